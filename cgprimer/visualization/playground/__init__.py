"""The playground: a page that runs cgprimer in the browser, and the Python code behind the page.

It may import everything above `course`. `playground_session.py` answers the requests of the page
and is the place to start reading. `playground_views.py` computes the answers,
`playground_training.py` the progress of training runs, and `playground_archives.py` packs the
packages that the page unpacks.
"""
