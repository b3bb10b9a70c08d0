"""All compiled code. Each file here stands alone: Numba stamps its cache with one file only.

Whatever becomes of the folder of that cache, it is compiled anew where need be.
"""

import logging
from contextlib import suppress

from numba.core.caching import FunctionCache

from . import across, alias, lines, tiles

log = logging.getLogger(__name__)


class Forgiving(FunctionCache):
    """Numba's cache of a function on disk, for which a damaged file is none, and a full disk no reason to stop."""

    def load_overload(self, sig, target_context):
        """Compiled code from the disk, or None."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as wrong:  # whatever a file that was cut makes of itself
            log.info("compiled code on disk is damaged, and made anew: %s", wrong)
            with suppress(Exception):
                self.flush()
            return None

    def save_overload(self, sig, data):
        """Compiled code to the disk, if it takes it."""
        try:
            super().save_overload(sig, data)
        except Exception as wrong:
            log.info("compiled code could not be kept on disk: %s", wrong)


for module in (across, alias, lines, tiles):
    for one in vars(module).values():
        if isinstance(getattr(one, "_cache", None), FunctionCache):
            one._cache.__class__ = Forgiving  # where there is no JIT there is none
