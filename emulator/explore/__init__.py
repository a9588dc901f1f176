"""The search for the fault that breaks a TPP (`conformance explore`): theory and words.

A **schedule** is what happens to a TPP in one run: its tasks, the customer's acts, faults, passing time, kills. It is a
document (`schedule`), so it can be drawn, saved, read, and played again. Each kind of fault (`faults`)
says which requests, settings or changes of the bank it means, and how it is drawn.

A **run** (`play`) gives one schedule to one bank of its own. Everything of the schedule is tied to the number of a
request, never to real time, and happens on the bank's thread after that request, before its answer leaves. So the same
schedule and the same requests of the TPP give the same run; only ids differ, as a TPP may keep what it has stored in
earlier runs, and with them which of the entries booked in a run a feed with a `chance` below 1 concerns. Bank time
stands still except that each request of the TPP lets a moment pass, and that time jumps to what is due when the TPP
only waits. A run ends when the TPP has ended, or when nothing is due and it is silent, or at a timeout; silence is
counted in looks at the run, so that a slow machine does not end it. Then all that is still due happens, and the run is
judged.

The **judgement** (`judge`) has five rules, and all of them compare what the TPP did and claims with what is true in the
bank: no order is paid twice or after a decline; claims agree with the ledger; no check of level must fails; the TPP has
not crashed; it does not send for ever. A rule may only use what the TPP could know: a claim `open` is wrong only if the
TPP still got answers after the payment had ended, a balance is that of the last answer that was delivered whole.

The **search** (`search`) draws schedules by hypothesis, with a seed of its own each, plays them in parallel, and
remembers every outcome. A schedule that fails is played twice more, and then again with one part less, as long as it
still fails so. What is tried depends on outcomes only, so the number of jobs changes the speed and nothing else.

The TPP is a `judge.Process`: a command, or a hook; in tests, an object with the same members. Only `search` imports
hypothesis.
"""
