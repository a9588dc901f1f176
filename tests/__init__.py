"""What each folder of tests is for. Shared tools are the modules beside this one.

    unit/           one package of the program without sockets, a folder each; `unit/pages` all pages without a browser
    api/            the TPP and control interfaces, as requests to an application; the commands of the command line
    scenarios/      every ready scenario: its story, its schema, and what happens without one of its parts
    conformance/    the report: each check against a good TPP, and against one that makes its mistake (`mutants.py`)
    explore/        the search for faults, with TPPs that have one
    notifications/  what is sent to TPPs, and when
    postgres/       several processes on one store, and what fails there (`jepsen.py`)
    e2e/            real ports, processes and browsers: few, one for each way through everything
    crash/          kill -9, full disks, power failures
    hostile/, fuzz/ what is refused at the wire, in signatures and in files
    docs/           the manual: its examples run, its addresses exist; `python -m tests.docs.sections` writes some of it
    examples/       the programs of the manual in other languages
    agents/         the MCP server
    bench/          `make bench`
    planted.py      faults, each a changed line, that some test must notice

Lists that are kept by hand beside what they list, and fail when something is missing: the settings in
`api/test_every_member.py`, the flags in `unit/test_serve_settings.py`, the statuses of codes in
`unit/api/test_statuses.py`, the pages of the console in `unit/pages/test_console.py`, the form of a recorded answer in
`emulator/api/description/answers.json` (`python -m tests.docs.answers`).
"""
