"""Native engines: the same tape, fast. Found by entry point; core never imports this ring."""
