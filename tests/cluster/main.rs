//! Two servers on a store with many writers: what is added through one comes out of the other. Runs
//! on the store that imitates a cluster, and on FoundationDB if there is one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub
)]

#[cfg(feature = "fdb")]
mod away;
mod bench;
mod contention;
mod handing_over;
mod hot_queues;
mod pipelines;
mod priority_queues;
#[cfg(feature = "fdb")]
mod processes;
mod ranks;
#[cfg(feature = "fdb")]
mod recovery;
#[cfg(feature = "fdb")]
#[path = "../support/server.rs"]
mod server;
#[cfg(feature = "fdb")]
mod starting;
mod stores;
mod streams;
mod task_queues;
mod telling;
#[cfg(feature = "fdb")]
mod tls;
mod tracking;
mod transactions;
mod waking;
mod watching;

/// Makes a test module of the suite, with one test for each case.
macro_rules! suite {
    ($store:ident: $($group:ident { $($case:ident)* })*) => {
        mod $store {
            $($(
                #[test]
                fn $case() {
                    if let Some(bench) = crate::stores::$store() {
                        crate::$group::$case(&bench);
                    }
                }
            )*)*
        }
    };
}

macro_rules! every_case {
    ($($store:ident)*) => {
        $(suite! { $store:
            contention {
                pushes_to_one_list_do_not_conflict
                pushes_to_one_priority_do_not_conflict
                additions_of_different_members_do_not_conflict
                additions_of_tasks_do_not_conflict
            }
            handing_over {
                nothing_is_lost_or_doubled_with_random_pauses
                each_element_goes_to_one_of_two_waiters_on_two_servers
                one_consumer_sees_one_producer_in_order
                a_wake_up_is_fast
            }
            pipelines {
                a_read_does_not_overtake_the_write_before_it
                reads_after_pushes_of_many_clients_see_their_own
                pushes_at_once_to_several_lists_do_not_conflict
                a_read_before_a_push_does_not_conflict
            }
            priority_queues {
                pushes_of_two_servers_do_not_conflict
                values_of_a_client_stay_in_their_order_within_a_priority
                each_value_is_popped_once_at_either_end
            }
            ranks {
                ranks_stay_right_while_both_servers_write_and_look_after_blocks
                indexes_stay_right_while_both_servers_write_and_look_after_blocks
            }
            hot_queues {
                two_servers_pop_each_element_of_a_hot_list_once
                two_servers_pop_each_member_of_a_hot_sorted_set_once
                two_servers_pop_each_value_of_a_hot_priority_queue_once
                who_waits_on_both_servers_gets_each_element_once
                a_hot_queue_that_is_renamed_and_pushed_to_loses_nothing
            }
            task_queues {
                each_task_is_taken_once_by_consumers_of_two_servers
                no_task_is_on_two_live_leases_of_two_servers
                a_take_of_the_other_server_wakes_for_what_fits_and_for_nothing_else
                whatever_makes_a_task_ready_wakes_the_other_server
                ends_of_leases_and_delays_wake_the_other_server
                lapse_retry_death_and_revival_are_seen_by_the_other_server
                upkeep_does_not_conflict_with_the_own_server
                additions_of_two_servers_do_not_conflict
                takes_of_different_tasks_do_not_conflict
                an_index_that_both_servers_look_after_hides_no_task
            }
            streams {
                an_entry_of_the_other_server_wakes_followers_and_a_consumer
                who_waits_hears_that_the_other_server_has_removed_group_or_stream
                who_waits_hears_that_a_group_is_gone_again
                an_entry_that_is_idle_for_too_long_goes_to_who_waits_on_the_other_server
                two_servers_add_in_order_and_deliver_each_entry_once
            }
            waking {
                every_command_of_the_other_server_that_fills_a_list_wakes
                every_command_of_the_other_server_that_fills_a_sorted_set_wakes
                every_command_of_the_other_server_that_fills_a_priority_queue_wakes
                a_key_of_another_type_that_makes_way_wakes
                a_key_that_has_expired_and_come_anew_wakes
                databases_that_the_other_server_exchanges_wake
                databases_that_are_exchanged_again_and_again_wake
                a_flushed_database_wakes_when_it_is_filled
                a_chain_of_moves_over_both_servers_is_followed
                one_waiter_for_several_keys_is_served_once
                who_waits_for_several_keys_is_not_overtaken
            }
            telling {
                all_who_wait_for_a_key_are_served_in_order
                one_who_comes_back_after_nobody_has_waited_is_served
                many_keys_are_told
            }
            watching {
                every_change_on_the_other_server_spoils_a_transaction
                untouched_keys_spoil_nothing
                watching_costs_pushes_no_conflict
            }
            tracking {
                every_change_on_the_other_server_is_told
                no_client_keeps_a_value_that_has_changed
            }
            transactions {
                no_reader_sees_half_of_a_transfer
                pops_of_two_transactions_do_not_miss_each_other
                increments_of_two_servers_are_all_counted
            }
        })*
    };
}

every_case! { imitation failing }

#[cfg(feature = "fdb")]
every_case! { fdb }
