"""A page that follows a file as it is edited.

``live_pages.py`` decides what is shown and when a page is made again, ``page_server.py`` serves it
at an address of this machine, and ``page.js`` replaces the page in the browser.
"""
