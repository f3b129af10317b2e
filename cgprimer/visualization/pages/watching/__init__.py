"""A page that follows a file as it is edited.

``live.py`` has what is shown and when it is made anew, ``server.py`` the address that browsers of
this machine find it at, and ``page.js`` puts a new page in the place of the one before.
"""
