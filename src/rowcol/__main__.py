"""`python -m rowcol` is the command `rowcol`."""

from .cli import main

if __name__ == "__main__":
    main()
