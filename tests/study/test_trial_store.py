"""The record of a search: nothing that finished is lost, whatever others do to its trials."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.exceptions import StorageInternalError
from optuna.trial import TrialState
from sklearn.linear_model import Ridge

from f2a_tune.outcome import FoldResult, Kind, Outcome
from f2a_tune.sklearn_plugin.search_space import SearchSpace
from f2a_tune.study import optuna_private
from f2a_tune.study.attributes import OWNER
from f2a_tune.study.fold_record import FoldRecord, LevelResult
from f2a_tune.study.reader import read_study
from f2a_tune.study.trial_store import TrialStore

SPACE = SearchSpace({"alpha": FloatDistribution(0, 1)}, Ridge())


def finished(score):
    return FoldRecord(Kind.FINISHED, 0.1, 1.0, FoldResult(score, 0.1, 0.0))


GAVE_UP = FoldRecord.of(Outcome.gave_up(1.0), 1.0)


@pytest.fixture
def study():
    return optuna.create_study(direction="maximize")


def record(study, owner="me"):
    return TrialStore(study, SPACE, 2, None, owner)


def write(mine, place, fold, pull):
    mine.add(place, fold, pull)
    mine.store(place, fold)


def row(value):
    return SPACE.encoded({"alpha": value})


def test_all_folds_make_a_trial_complete(study):
    mine = record(study)
    place = mine.begin(row(0.5))
    write(mine, place, 0, finished(0.2))
    write(mine, place, 1, finished(0.4))
    (trial,) = study.trials
    assert trial.state is TrialState.COMPLETE
    assert trial.value == pytest.approx(0.3)
    assert trial.intermediate_values == {0: 0.2, 1: 0.4}


def test_a_trial_that_somebody_closed_goes_on_in_another(study):
    mine = record(study)
    place = mine.begin(row(0.5))
    write(mine, place, 0, finished(0.2))
    study.tell(0, state=TrialState.PRUNED)  # somebody took us for dead
    write(mine, place, 1, finished(0.4))
    assert [trial.state for trial in study.trials] == [TrialState.PRUNED, TrialState.COMPLETE]
    assert study.best_value == pytest.approx(0.3)
    assert read_study(study).winner.mean == pytest.approx(0.3)


def test_a_trial_that_was_taken_over_is_left_to_its_new_owner(study):
    mine, thief = record(study), record(study, "thief")
    place = mine.begin(row(0.5))
    write(mine, place, 0, finished(0.2))
    thief.read_news()
    assert thief.claim(0)
    mine.read_news()
    assert mine.open_elsewhere == (place,)
    mine.close()
    assert [trial.state for trial in study.trials] == [TrialState.PRUNED, TrialState.RUNNING]
    assert study.trials[1].user_attrs[OWNER] == "thief"
    write(thief, 0, 1, finished(0.4))
    assert study.trials[1].state is TrialState.COMPLETE
    (news,) = mine.read_news()
    assert (news.fold, news.record.result.test_scores) == (1, 0.4)


def test_of_several_runs_one_continues_the_trial_of_a_dead_run(storage, study_name):
    dead = record(optuna.create_study(storage=storage(), study_name=study_name), "dead")
    place = dead.begin(row(0.5))
    write(dead, place, 0, finished(0.2))
    stores = [
        record(optuna.load_study(storage=storage(), study_name=study_name), f"run {number}")
        for number in range(6)
    ]
    for store in stores:
        store.read_news()
    with ThreadPoolExecutor(len(stores)) as threads:
        won = list(threads.map(lambda store: store.claim(0), stores))
    assert won.count(True) == 1
    for store in stores:
        store.read_news()
    winner = stores[won.index(True)]
    assert all(one.open_elsewhere == (0,) for one in stores if one is not winner)
    write(winner, 0, 1, finished(0.4))
    view = read_study(dead.study)
    assert view.winner.mean == pytest.approx(0.3)
    assert [len(one.pulls) for one in view.configurations] == [2]


def test_what_another_has_finished_is_not_undone_by_a_give_up(study):
    mine = record(study)
    place = mine.begin(row(0.5))
    mine.add(place, 0, finished(0.2))
    mine.add(place, 0, GAVE_UP)
    mine.store(place, 0)
    assert mine.configurations[place].finished(0).test_scores == 0.2


def test_a_newer_pull_is_stored_though_an_older_was_being_written(study):
    mine = record(study)
    place = mine.begin(row(0.5))
    mine.add(place, 0, GAVE_UP)
    real = mine._scores

    def slowly(pulls):  # the retry ends while the give-up is on its way to the storage
        if pulls.get(0) is not None and pulls[0].kind is Kind.GAVE_UP:
            mine.add(place, 0, finished(0.2))
        return real(pulls)

    mine._scores = slowly
    mine.store(place, 0)
    mine.store(place, 0)
    stored = FoldRecord.from_attribute(study.trials[0].user_attrs["f2a:fold:0"])
    assert stored.kind is Kind.FINISHED
    assert len(stored.before) == 1


def test_two_runs_that_drew_the_same_complete_it_together(study):
    ours, theirs = record(study, "a"), record(study, "b")
    place, other = ours.begin(row(0.5)), theirs.begin(row(0.5))
    write(ours, place, 0, finished(0.2))
    write(theirs, other, 1, finished(0.4))
    ours.read_news()
    ours.close()
    assert TrialState.COMPLETE in {trial.state for trial in study.trials}
    theirs.close()
    reading = read_study(study)
    assert len(reading.configurations) == 1
    assert reading.winner.scores == [0.2, 0.4]


def test_a_winner_with_one_of_two_folds_is_not_called_validated(study):
    mine = record(study)
    study.set_user_attr("f2a:folds", 2)
    write(mine, mine.begin(row(0.5)), 0, finished(0.2))
    assert not read_study(study).fully_validated


def test_in_a_plain_study_the_best_value_wins():
    study = optuna.create_study()
    for x, value in ((0.1, 5.0), (0.1, 5.0), (0.2, 1.0)):
        study.add_trial(
            optuna.trial.create_trial(
                params={"x": x}, distributions={"x": FloatDistribution(0, 1)}, value=value
            )
        )
    assert read_study(study).winner.mean == study.best_value == 1.0


def test_one_slow_write_keeps_no_time_for_closing(study):
    mine = record(study)
    for number in range(20):
        mine.begin(row(number / 100))
    mine._openings.extend([0.001] * 8)
    mine._openings.append(5.0)
    assert mine.closing_seconds(1) < 0.1
    mine._closings.extend([0.002] * 8)
    mine._closings.append(5.0)
    assert mine.closing_seconds(1) == pytest.approx(23 * 0.002)
    assert mine.closing_seconds(4) == pytest.approx(32 * 0.002)


def test_open_trials_are_counted_once_whoever_notices_their_end(study):
    mine = record(study)
    place = mine.begin(row(0.5))
    configuration = mine.configurations[place]
    trial = configuration.trial
    write(mine, place, 0, finished(0.2))
    mine._closings.append(1.0)
    assert mine.closing_seconds(0) == 1.0
    mine._disown(configuration, trial)
    mine._disown(configuration, trial)
    assert mine.closing_seconds(0) == 0.0
    write(mine, place, 1, finished(0.4))
    assert mine.closing_seconds(0) == 0.0


def test_a_score_between_whose_two_writes_its_run_was_killed(study):
    first = record(study, "dead")
    place = first.begin(row(0.5))
    trial = first.configurations[place].trial
    trial.set_user_attr("f2a:fold:0", finished(0.2).to_attribute())  # and no report
    mine = record(study)
    mine.read_news()
    mine.claim(0)
    assert study.trials[1].intermediate_values == {0: 0.2}


def test_give_ups_that_were_never_seen_are_heard_of(study):
    mine, theirs = record(study), record(study, "other")
    place = theirs.begin(row(0.5))
    write(theirs, place, 0, GAVE_UP)
    (first,) = mine.read_news()
    assert first.missed_seconds == ()
    write(theirs, place, 0, GAVE_UP)
    write(theirs, place, 0, GAVE_UP)
    write(theirs, place, 0, finished(0.2))
    (last,) = mine.read_news()
    assert len(last.record.before) == 3
    assert last.missed_seconds == (1.0, 1.0)


def test_with_nothing_fully_validated_the_race_says_what_is_best(study):
    mine = TrialStore(study, SPACE, 5, None, "me")
    lucky, steady = mine.begin(row(0.1)), mine.begin(row(0.2))
    write(mine, lucky, 0, finished(0.8))
    for fold, score in enumerate([0.3, 0.8, 0.7]):
        write(mine, steady, fold, finished(score))
    study.set_user_attr("f2a:folds", 5)
    reading = read_study(study)
    assert not reading.fully_validated
    assert reading.winner.number == lucky  # half a point above on the fold that both have


@pytest.mark.parametrize("said", [-1, 0, 1e12, "many", None])
def test_a_number_of_folds_that_makes_no_sense_is_not_believed(study, said):
    mine = record(study)
    write(mine, mine.begin(row(0.5)), 1, finished(0.2))
    study.set_user_attr("f2a:folds", said)
    assert read_study(study).n_folds == 2
    assert read_study(study).winner.mean == 0.2


def test_names_of_other_studies_stay_as_they_are():
    study = optuna.create_study()
    study.optimize(
        lambda t: t.suggest_float("lr@a", 0, 1) + t.suggest_float("lr@b", 2, 3), n_trials=3
    )
    assert set(read_study(study).winner.params) == {"lr@a", "lr@b"}


def test_a_trial_whose_answer_was_lost_is_not_left_open(study, monkeypatch):
    really, answers = optuna_private.begin_trial, []

    def begin(*args):
        trial = really(*args)
        answers.append(trial)
        if len(answers) == 1:
            raise StorageInternalError("the server was stopped before it could answer")
        return trial

    monkeypatch.setattr(optuna_private, "begin_trial", begin)
    mine = record(study)
    place = mine.begin(row(0.5))
    write(mine, place, 0, finished(0.2))
    mine.close()
    assert [trial.state for trial in study.trials] == [TrialState.PRUNED] * 2
    assert [trial.intermediate_values for trial in study.trials] == [{}, {0: 0.2}]
    (only,) = read_study(study).configurations
    assert only.scores == [0.2]


@pytest.mark.parametrize("kind", [[], {}, None, 3, "unknown", ["finished"]])
def test_attributes_of_no_known_kind_are_ignored(kind):
    assert FoldRecord.from_attribute({"kind": kind}) is None


@pytest.mark.parametrize("content", [
    {"test": {}},
    {"test": 1, "curve": [{"level": 10**12, "rounds": 1}], "rounds": "n"},
    {"test": 1, "curve": [{"level": "a"}, None, 3], "rounds": "n"},
    {"test": 1, "curve": {"level": 1}},
])  # fmt: skip
def test_damaged_records_can_be_read(content):
    record = FoldRecord.from_attribute({"kind": "finished", **content})
    assert record.curve == ()
    assert record.outcome(None).seconds == 0


def test_a_curve_survives_the_storage():
    levels = tuple(
        LevelResult(level, 3 * 2**level, 0.1 * level, FoldResult(0.5 + 0.1 * level, 0.1, 0.01))
        for level in range(3)
    )
    record = FoldRecord(
        Kind.FINISHED, 0.4, 1.0, levels[-1].result, curve=levels, rounds_parameter="n_estimators"
    )
    again = FoldRecord.from_attribute(record.to_attribute())
    assert again.curve == levels
    assert again.at(1) == levels[1]
    assert again.at(3) is None
    assert replace(again, stopped_itself=True).at(3) == levels[2]
    assert again.since(replace(record, curve=levels[:2], seconds=0.3)).curve == levels[2:]
