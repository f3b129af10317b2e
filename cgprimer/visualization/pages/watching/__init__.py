"""Pages that follow files while they are edited.

`live_pages.py` renders a page again when its files change, `page_server.py` serves the page on this
machine, and `live_page.js` replaces the page in the browser.
"""
