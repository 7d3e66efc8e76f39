"""Operational limits of everything that reads and writes a study."""

# A trial whose cutoff passed this long ago, or that has had no plan for this long, is stale: its
# process would have closed it. A wrong verdict costs a result, so this is longer than a process
# waits for a storage that does not answer.
STALE_TRIAL_SECONDS = 90.0
# Stale trials are looked for this often; it means to read all trials.
STALE_CHECK_SECONDS = 10.0

# Every run of a search writes a heartbeat this often, and counts as gone when its record has not
# changed for the second number of seconds. A storage may be slow, and a machine busy.
HEARTBEAT_SECONDS = 1.0
HEARTBEAT_TIMEOUT_SECONDS = 20.0
# Records older than this, by the clocks of two machines, belong to runs that have ended.
OLD_RECORD_SECONDS = 60.0

# How often a run reads what others have written, and the largest share of its time for it.
SYNC_SECONDS = 0.1
SYNC_SHARE = 0.1
# A run that joined ends this much earlier than the one that started the search, which then reads
# what all have written; and that one waits this long for runs that have not ended yet.
JOINED_END_EARLIER_SECONDS = 0.15
WAIT_FOR_RUNS_SECONDS = 0.15

# How long to wait for a storage that does not answer, and how often to try again.
STORAGE_OUTAGE_SECONDS = 60.0
STORAGE_RETRY_SECONDS = 0.5
LAST_TRY_SECONDS = 0.1
# A journal's lock is held for milliseconds. After this long its holder is dead (Optuna: 30 s).
JOURNAL_LOCK_SECONDS = 5

# The median of this many recent writes is the time that one write takes. Writing down a pull takes
# up to three of them.
WRITES_REMEMBERED = 9
WRITES_PER_PULL = 3

# Longer error texts are cut: some storages take 2,000 characters.
LONGEST_ERROR = 1000
# A study that claims to have more folds, or levels of a learning curve, is not believed.
MOST_FOLDS = 10_000
MOST_LEVELS = 64
# After this many repeated draws in a row the base sampler has nothing new to offer.
REPEATED_DRAWS = 10
