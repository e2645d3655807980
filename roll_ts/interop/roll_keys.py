"""The keys that ROLL's agentic pipeline reads, by section. It drops any other key without a word."""

from __future__ import annotations


def _words(text: str) -> list[str]:
    return text.split()


TOP = frozenset(
    _words(
        """
        actor_infer actor_train add_len_reward add_token_level_kl adv_estimator advantage_clip async_generation_ratio
        base_dir batch_adjust_mode checkpoint_config critic critic_warmup custom_envs dirty_data_mask dual_clip_loss
        enable_old_logprobs_recompute enable_reference entropy_loss_coef env_monitor episode_reward_weight eval_steps
        exp_mode exp_name force_disable_old_logprobs_recompute gamma generate_opt_level init_kl_coef
        is_num_return_sequences_expand is_offload_optimizer_states_in_train_step is_offload_states is_pure_opd
        is_use_additional_prompts kl_horizon kl_loss_coef kl_penalty l2 lambd length_profiler_dir local_rank
        logging_dir logging_steps loss_agg_mode max_additional_running_prompts max_ckpt_to_keep max_grad_norm
        max_running_requests max_steps model_download_type model_update_buffer_size_mb norm_mean_type norm_std_type
        num_gpus_per_node num_nodes open_feedback_turn otlp_output_dir output_dir parse_tool_call_parameter_to_dict
        partial_gpu_mode pg_clip pg_clip_high pg_clip_low ppo_epochs pretrain profiler_memory profiler_output_dir
        profiler_timeline prompt_length pure_opd_pipeline_type ratio_type reference render_save_dir
        report_length_and_rewards response_length resume_from_checkpoint reward reward_clip reward_normalization
        reward_pretrain rollout_batch_size rollout_dump_dir rollout_mock router_args rpc_timeout save_steps seed
        sequence_length skip_mock_system_prompt step_reward_gamma step_reward_weight student_infer student_train
        system_envs target_kl teacher track_with tracker_kwargs train_env_manager train_infer_correction
        transfer_backend use_kl_loss use_opd use_pg_clip_range use_reward_norm use_reward_scaling use_token_reward
        user_defined_rollout_loop_cls val_batch_size val_env_manager val_prompt_length val_sequence_length value_clip
        whiten_advantages whiten_rewards
        """
    )
)

WORKER = frozenset(
    _words(
        """
        apply_loss_scale backend_timeout data_args device_mapping generating_args infer_batch_size logits_in_fp32
        max_concurrency max_tokens_per_microbatch_in_infer max_tokens_per_microbatch_in_train model_args
        model_update_frequency mtp_training_mode name num_gpus_per_worker offload_nccl opd_kl_coef pg_variant
        router_replay sequence_length_round_in_infer sequence_length_round_in_train sequence_packing_args
        strategy_args system_envs tag_included topr_negative_weight topr_positive_weight training_args
        use_dynamic_batching_in_infer use_dynamic_batching_in_train use_sequence_packing worker_cls world_size
        """
    )
)

MANAGER = WORKER | frozenset(
    _words(
        """
        format_penalty group_filter_cls group_size group_size_redundancy llm_proxy max_env_num_per_worker
        max_traj_per_env num_env_groups num_groups_partition tags
        """
    )
)

WORKERS = ("actor_train", "actor_infer", "reference", "critic", "reward", "student_train", "student_infer")
MANAGERS = ("train_env_manager", "val_env_manager")
