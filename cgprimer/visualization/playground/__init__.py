"""The playground: a page that runs cgprimer in the browser, and the Python code behind the page.

It may import everything above `course`. `playground_session.py` answers the requests of the page
and is a good place to start reading. `playground_requests.py` checks the requests,
`playground_views.py` computes the answers, and `playground_training.py` runs the training.
`playground_builder.py` writes the folder with the page, and `playground_archives.py` packs the
Python packages that the page unpacks.
"""
