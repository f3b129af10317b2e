"""A snapshot of the interface: what users rely on, recorded before the redesign of the package.

The tests here compare the package with recorded data. No flag or script of this repository
regenerates the data: whoever changes a public name, an option, an exit code, a JSON key, a file
format or a numeric result edits the data by hand and gives the reason in ``docs/changelog.md``.

Additions pass: new names, optional parameters, options, choices, JSON keys and files. Wording is
not compared: messages, help texts, docstrings, titles, and JSON strings that hold prose.

==========================  ====================================================================
data                        what is compared
==========================  ====================================================================
``names.json``              public names, parameters with kinds and defaults, members of classes
                            and of results
``commands.json``           commands, options in all spellings, arguments, types, defaults
``runs.json``               command lines with exit codes, JSON, numbers, and files written
``deep_imports.json``       imports from inside the package that the documentation shows
``entry_points.json``       groups of entry points, the built-in ones and those of other packages
``files/``                  files that earlier versions wrote: runs, checkpoints, fits, data sets,
                            sheets, answers, journals, the small files of ``autograder.zip``
==========================  ====================================================================

In ``runs.json``, the text ``"*"`` stands for a value that is not compared (prose, durations).
``autograder.zip`` itself is not kept, since it holds the package as a wheel of more than 1 MB.
"""
