"""What a person looks at: pictures and tables as plain data, drawn on axes or written as a page."""
