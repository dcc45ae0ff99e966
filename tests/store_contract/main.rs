//! One suite for what every store guarantees, run against each of them: the embedded store, the
//! fault-injecting wrapper, the store that imitates a cluster, and FoundationDB if there is one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub
)]

mod adds;
mod basics;
mod conflicts;
#[cfg(feature = "fdb")]
mod fdb_only;
#[cfg(feature = "fdb")]
#[path = "../support/foundationdb.rs"]
mod foundationdb;
mod logs;
mod minima;
mod model;
mod ranges;
mod savepoints;
mod stores;
mod subject;
mod watches;

/// Makes a test module of the suite, with one test for each case.
macro_rules! suite {
    ($store:ident: $($group:ident { $($case:ident)* })*) => {
        mod $store {
            $($(
                #[test]
                fn $case() {
                    if let Some(subject) = crate::stores::$store(stringify!($case)) {
                        crate::$group::$case(&subject);
                    }
                }
            )*)*
        }
    };
}

macro_rules! every_case {
    ($($store:ident)*) => {
        $(suite! { $store:
            basics {
                a_value_is_read_back_after_the_commit
                a_missing_key_has_no_value
                an_empty_value_is_a_value
                a_value_is_replaced
                a_cleared_key_is_gone
                clearing_a_missing_key_is_no_failure
                own_writes_are_seen_before_the_commit
                nothing_is_seen_by_others_before_the_commit
                a_dropped_transaction_changes_nothing
                a_transaction_without_writes_commits
                a_snapshot_does_not_see_later_commits
                a_value_of_ninety_thousand_bytes_is_kept
                keys_of_nineteen_hundred_bytes_are_kept_and_ordered
                keys_of_any_bytes_are_kept
                size_and_count_grow_with_the_writes
                many_writes_commit_together
                a_second_handle_reads_what_the_first_wrote
                an_answer_is_given_once
            }
            ranges {
                a_range_is_in_order_and_without_its_end
                a_reverse_range_starts_at_its_end
                a_limit_cuts_the_range
                a_reverse_limit_keeps_the_last_rows
                a_limit_of_zero_gives_nothing
                an_empty_or_inverted_range_gives_nothing
                bounds_need_not_be_keys
                a_range_sees_own_writes
                a_range_with_a_limit_sees_own_writes
                a_cleared_range_is_gone_without_its_end
                clearing_a_range_clears_own_writes
                writes_after_a_cleared_range_stay
                an_empty_range_clears_nothing
                a_long_range_is_whole
            }
            adds {
                an_addition_to_nothing_is_its_delta
                an_addition_of_zero_makes_the_key
                additions_sum_up_over_commits
                a_negative_sum_is_twos_complement
                a_sum_wraps_around
                an_addition_is_seen_by_the_own_transaction
                an_addition_after_a_set_adds_to_it
                a_set_after_an_addition_replaces_it
                a_clear_after_an_addition_removes_it
                an_addition_after_a_clear_starts_at_zero
                an_addition_after_a_cleared_range_starts_at_zero
                a_cleared_range_removes_an_addition
                ranges_show_pending_additions
                a_short_value_counts_as_if_filled_with_zeros
                a_dropped_transaction_adds_nothing
            }
            minima {
                a_minimum_of_nothing_is_its_operand
                the_least_operand_stays
                numbers_are_compared_without_a_sign
                a_minimum_is_seen_by_the_own_transaction
                minima_and_additions_apply_in_their_order
                a_minimum_after_a_cleared_range_is_its_operand
                concurrent_minima_never_conflict
            }
            conflicts {
                concurrent_additions_never_conflict
                concurrent_blind_writes_never_conflict
                a_snapshot_read_never_conflicts
                a_read_key_that_changes_conflicts
                a_read_range_that_grows_conflicts
                a_limited_range_conflicts_only_where_it_read
                a_limited_reverse_range_conflicts_only_where_it_read
                write_skew_is_prevented
                an_explicit_conflict_conflicts
                an_explicit_conflict_elsewhere_does_not_conflict
                a_conflicting_transaction_applies_nothing
                a_read_of_an_own_write_does_not_conflict
                a_read_of_an_own_addition_conflicts
                a_row_that_comes_between_two_that_are_cleared_stays
                a_row_that_comes_between_two_that_are_popped_conflicts
                concurrent_read_modify_writes_lose_nothing
            }
            logs {
                rows_are_in_the_order_of_their_commits
                what_commits_later_comes_later
                a_log_that_was_cleared_in_part_goes_on
                concurrent_appends_never_conflict
            }
            savepoints {
                a_set_is_undone
                a_clear_is_undone
                a_cleared_range_is_undone
                additions_are_undone
                what_removes_an_addition_is_undone
                minima_are_undone
                an_append_is_undone
                what_is_released_stays
                savepoints_nest
                what_was_released_is_undone_with_the_outer_savepoint
                savepoints_end_with_an_outer_one
                a_savepoint_that_is_open_at_the_commit_keeps_its_writes
                a_transaction_that_was_undone_whole_changes_nothing
                a_failure_is_undone
                a_failure_before_the_savepoint_stays
                size_and_count_are_restored
                ranges_are_as_before_after_a_rollback
                a_row_that_a_read_passed_over_is_there_again
                a_watch_does_not_fire_for_what_was_undone
                a_read_that_was_undone_conflicts
                a_write_that_was_undone_conflicts_with_none
                random_writes_and_rollbacks_match_a_map
            }
            watches {
                a_watch_gives_the_value
                a_watch_fires_after_a_set
                a_watch_fires_after_an_addition
                a_watch_fires_after_a_cleared_range
                a_watch_does_not_fire_before_the_commit
                a_watch_does_not_fire_for_a_dropped_transaction
                a_dropped_watch_is_no_failure
                all_watches_of_a_key_fire
            }
            model {
                a_random_history_matches_a_map
            }
        })*
    };
}

every_case! { embedded faulty optimistic faulty_optimistic }

#[cfg(feature = "fdb")]
every_case! { fdb }
