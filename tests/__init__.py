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
    cases.py        a table of cases as one test, where each would be quicker than what pytest does around it
    planted.py      faults, each a changed line, that some test must notice

Lists that are kept by hand, and fail when something is missing:

    settings of a bank         api/test_every_member.py
    flags                      unit/test_serve_settings.py
    statuses of error codes    unit/api/test_statuses.py
    products                   unit/payments/test_payee.py (who verify the payee)
    effects, steps             api/test_control_effects.py; ready scenarios: api/test_control_ready_scenarios.py
    changes by control         api/test_full_disk.py
    sandbox operations         api/test_sandbox_bodies.py
    checks of the report       conformance/mutants.py
    members of answers         `emulator/api/description/answers.json` (`python -m tests.docs.answers`),
                               api/test_berlin_group.py; of the details of a payment: api/test_answer_shapes.py
    lengths of texts           api/test_openapi.py
"""
