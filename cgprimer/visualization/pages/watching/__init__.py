"""Web pages that are updated when their files change.

`live_pages.py` renders a page again when its files change, `page_server.py` serves the page on this
machine, and `live_page.js` replaces the page in the browser.
"""
