BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0014');
CREATE TABLE api_key (
	name VARCHAR(100) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	scope VARCHAR(16) NOT NULL, 
	last_four VARCHAR(4) NOT NULL, 
	created_at DATETIME NOT NULL, 
	expires_at DATETIME, 
	revoked_at DATETIME, 
	PRIMARY KEY (name), 
	UNIQUE (digest)
);
INSERT INTO "api_key" VALUES('ci','a9c2f8eda65572df8571e02ddc474cf37f14257ed9e4f78f182f0fcbb39bd33e','write','Bstg','2026-11-27 15:42:30.450589',NULL,NULL);
CREATE TABLE claim (
	id VARCHAR(32) NOT NULL, 
	uploader VARCHAR(100) NOT NULL, 
	is_operator BOOLEAN NOT NULL, 
	added_at DATETIME NOT NULL, 
	import_id VARCHAR(32) NOT NULL, 
	quarantine TEXT NOT NULL, 
	confirmed_by TEXT NOT NULL, 
	withdrawn_by TEXT NOT NULL, 
	withdrawn_at DATETIME, is_withdrawn_by_operator BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (id, uploader, is_operator)
);
INSERT INTO "claim" VALUES('161edfb5b123e00e4e915fa658aebd06','ci',0,'2026-11-27 15:42:28.697918','8ea7f0d9146646c08c254961921e8038','','','key:ci','2026-11-27 15:42:28.799025',0);
INSERT INTO "claim" VALUES('323c0b57722adc4be1a2d060ab4b0c27','ci',0,'2026-11-27 15:42:28.697918','8ea7f0d9146646c08c254961921e8038','','','key:ci','2026-11-27 15:42:28.799025',0);
INSERT INTO "claim" VALUES('591c8ccc3edeaa7ba50211bd50d004e4','ci',0,'2026-11-27 15:42:28.697918','8ea7f0d9146646c08c254961921e8038','','','key:ci','2026-11-27 15:42:28.765870',0);
CREATE TABLE measurement (
	id VARCHAR(32) NOT NULL, 
	model TEXT NOT NULL, 
	accelerator TEXT NOT NULL, 
	engine TEXT NOT NULL, 
	engine_version TEXT NOT NULL, 
	weight_precision TEXT NOT NULL, 
	kv_precision TEXT NOT NULL, 
	statistic TEXT NOT NULL, 
	load TEXT NOT NULL, 
	status TEXT NOT NULL, 
	activation_precision TEXT NOT NULL, 
	speculation TEXT NOT NULL, 
	prefix_caching TEXT NOT NULL, 
	chunked_prefill TEXT NOT NULL, 
	date TEXT NOT NULL, 
	software TEXT NOT NULL, 
	derived TEXT NOT NULL, 
	campaign TEXT NOT NULL, 
	note TEXT NOT NULL, 
	n_accelerator DOUBLE, 
	tp DOUBLE, 
	pp DOUBLE, 
	dp DOUBLE, 
	ep DOUBLE, 
	n_input_token DOUBLE, 
	n_output_token DOUBLE, 
	concurrency DOUBLE, 
	request_rate DOUBLE, 
	ttft_s DOUBLE, 
	nttft_s_per_token DOUBLE, 
	itl_s DOUBLE, 
	tpot_s DOUBLE, 
	e2e_s DOUBLE, 
	output_throughput_token_per_s DOUBLE, 
	total_throughput_token_per_s DOUBLE, 
	request_throughput_per_s DOUBLE, 
	power_w DOUBLE, 
	memory_byte DOUBLE, 
	n_node DOUBLE, 
	cp DOUBLE, 
	moe_tp DOUBLE, 
	n_prefill_accelerator DOUBLE, 
	n_decode_accelerator DOUBLE, 
	n_speculative_token DOUBLE, 
	prefix_cache_ratio DOUBLE, 
	lora_rank DOUBLE, 
	duration_s DOUBLE, 
	n_request DOUBLE, 
	n_failed DOUBLE, 
	n_input_token_at_statistic DOUBLE, 
	n_output_token_at_statistic DOUBLE, 
	flash_attention BOOLEAN NOT NULL, 
	added_at DATETIME NOT NULL, chunk_size_token DOUBLE, poll_interval_step DOUBLE, stream_interval_token DOUBLE, attention_dp_wait_step DOUBLE, batch_wait_step DOUBLE, length_variation DOUBLE, graphs TEXT DEFAULT '' NOT NULL, peer_to_peer TEXT DEFAULT '' NOT NULL, stack TEXT DEFAULT '' NOT NULL, acceptance_ratio DOUBLE, max_num_seqs DOUBLE, max_context_token DOUBLE, link_bandwidth_byte_per_s DOUBLE, power_limit_w DOUBLE, import_id VARCHAR(32) DEFAULT '' NOT NULL, uploader VARCHAR(100) DEFAULT '' NOT NULL, quarantine TEXT DEFAULT '' NOT NULL, confirmed_by TEXT DEFAULT '' NOT NULL, withdrawn_by TEXT DEFAULT '' NOT NULL, is_operator BOOLEAN DEFAULT 1 NOT NULL, withdrawn_at DATETIME, is_withdrawn_by_operator BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "measurement" VALUES('161edfb5b123e00e4e915fa658aebd06','meta-llama/Llama-3.1-405B','amd-mi300x-192gb','vllm','','fp8','','mean','offline','ok','','','','','2024-11','','output_throughput_token_per_s','dstack','4xMi300x; all requests at once',4.0,4.0,1.0,NULL,NULL,128.0,2048.0,8.0,NULL,NULL,NULL,NULL,NULL,NULL,167.458,177.924,0.0817666,NULL,NULL,1.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,97.8394,8.0,NULL,NULL,NULL,1,'2026-11-27 15:42:28.653968',NULL,NULL,NULL,NULL,NULL,0.0,'','','dstack',NULL,NULL,NULL,NULL,NULL,'c5d4c0f411a542aab8cc6c8e66b27f7b','','','','',1,NULL,0);
INSERT INTO "measurement" VALUES('323c0b57722adc4be1a2d060ab4b0c27','meta-llama/Llama-3.1-405B','amd-mi300x-192gb','vllm','','fp8','','mean','offline','ok','','','','','2024-11','','output_throughput_token_per_s','dstack','4xMi300x; all requests at once',4.0,4.0,1.0,NULL,NULL,128.0,2048.0,4.0,NULL,NULL,NULL,NULL,NULL,NULL,86.9881,92.4248,0.0424747,NULL,NULL,1.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,94.1738,4.0,NULL,NULL,NULL,1,'2026-11-27 15:42:28.653968',NULL,NULL,NULL,NULL,NULL,0.0,'','','dstack',NULL,NULL,NULL,NULL,NULL,'c5d4c0f411a542aab8cc6c8e66b27f7b','','','','',1,NULL,0);
INSERT INTO "measurement" VALUES('591c8ccc3edeaa7ba50211bd50d004e4','meta-llama/Llama-3.1-405B','amd-mi300x-192gb','vllm','','fp8','','mean','offline','ok','','','','','2024-11','','output_throughput_token_per_s','dstack','4xMi300x; all requests at once',4.0,4.0,1.0,NULL,NULL,128.0,2048.0,32.0,NULL,NULL,NULL,NULL,NULL,NULL,576.242,612.258,0.281368,NULL,NULL,1.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,113.73,32.0,NULL,NULL,NULL,1,'2026-11-27 15:42:28.733812',NULL,NULL,NULL,NULL,NULL,0.0,'','','dstack',NULL,NULL,NULL,NULL,NULL,'7f5eeeee4c164776960f2c4c033c15c9','lab','','','',0,NULL,0);
INSERT INTO "measurement" VALUES('b8e465a6a62f22070818f52bceccdeb6','meta-llama/Llama-3.1-405B','amd-mi300x-192gb','vllm','','fp8','','mean','offline','ok','','','','','2024-11','','output_throughput_token_per_s','dstack','4xMi300x; all requests at once',4.0,4.0,1.0,NULL,NULL,128.0,2048.0,16.0,NULL,NULL,NULL,NULL,NULL,NULL,322.831,343.008,0.157632,NULL,NULL,1.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,101.502,16.0,NULL,NULL,NULL,1,'2026-11-27 15:42:28.697918',NULL,NULL,NULL,NULL,NULL,0.0,'','','dstack',NULL,NULL,NULL,NULL,NULL,'8ea7f0d9146646c08c254961921e8038','ci','far off','','key:ci',0,'2026-11-27 15:42:28.765870',0);
CREATE TABLE model (
	id VARCHAR(200) NOT NULL, 
	spec JSON NOT NULL, 
	config JSON NOT NULL, 
	added_at DATETIME NOT NULL, uploader VARCHAR(100) DEFAULT '' NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "model" VALUES('ours/tiny','{"id": "ours/tiny", "lineage": "tiny", "fold_group": "tiny", "family": "", "model_type": "", "n_layer": 2, "n_encoder_layer": 0, "hidden_size": 64, "intermediate_size": 128, "mlp_gated": true, "n_head": 4, "n_kv_head": 4, "head_dim": 16, "attention": "mha", "kv_lora_rank": 0, "q_lora_rank": 0, "qk_rope_head_dim": 0, "v_head_dim": 0, "sliding_window": 0, "n_sliding_layer": 0, "n_linear_layer": 0, "n_sparse_layer": 0, "sparse_top_k": 0, "kv_compression": 0, "vocab_size": 1000, "tie_word_embeddings": false, "max_context_token": 0, "n_expert": 0, "n_expert_per_token": 0, "n_shared_expert": 0, "moe_intermediate_size": 0, "shared_expert_intermediate_size": 0, "n_dense_layer": 0, "weight_precision": "bf16", "n_param": 1000000, "n_param_active": 1000000, "n_param_lookup": 0, "n_param_published": null, "n_param_published_source": "", "n_param_difference": "", "released": null, "source": "a test", "note": ""}','{"model_type": "unheard_of"}','2026-11-27 15:42:28.662657','');
CREATE TABLE retraining (
	id VARCHAR(32) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	requested_at DATETIME NOT NULL, 
	started_at DATETIME, 
	finished_at DATETIME, 
	report JSON, 
	error TEXT NOT NULL, 
	owner VARCHAR(32) NOT NULL, stage TEXT DEFAULT '' NOT NULL, n_step_done INTEGER DEFAULT '0' NOT NULL, n_step INTEGER DEFAULT '0' NOT NULL, target VARCHAR(16) DEFAULT 'inference' NOT NULL, n_interruption INTEGER DEFAULT '0' NOT NULL, learnable_digest VARCHAR(32) DEFAULT '' NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "retraining" VALUES('59a0d9d8fe5449cf896f6625b66e81a8','done','2026-11-27 15:42:30.379978','2026-11-27 15:42:30.398596','2026-11-27 15:42:30.425140','{"version": "2"}','','folder','',0,0,'inference',0,'digest');
INSERT INTO "retraining" VALUES('6e6cfd6b85a74587b7d22cf2c132bf61','queued','2026-11-27 15:42:30.435123',NULL,NULL,NULL,'','folder','',0,0,'training',0,'');
CREATE TABLE shadow_count (
	champion VARCHAR(64) NOT NULL, 
	challenger VARCHAR(64) NOT NULL, 
	kind VARCHAR(40) NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	metric VARCHAR(40) NOT NULL, 
	bin INTEGER NOT NULL, 
	n BIGINT NOT NULL, 
	since DATETIME NOT NULL, 
	PRIMARY KEY (champion, challenger, kind, name, metric, bin)
);
INSERT INTO "shadow_count" VALUES('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','all','','answered',0,7,'2026-11-27 15:42:30.484668');
CREATE TABLE stack_row (
	id VARCHAR(32) NOT NULL, 
	owner VARCHAR(100) NOT NULL, 
	stack VARCHAR(100) NOT NULL, 
	cells JSON NOT NULL, 
	added_at DATETIME NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "stack_row" VALUES('1d6f37e47dee28f14ce228799bb45321','ci','rack','{"model": "ours/tiny", "accelerator": "t4", "concurrency": 8, "ttft_s": 0.1}','2026-11-27 15:42:30.466552');
CREATE TABLE training_claim (
	id VARCHAR(32) NOT NULL, 
	uploader VARCHAR(100) NOT NULL, 
	is_operator BOOLEAN NOT NULL, 
	added_at DATETIME NOT NULL, 
	import_id VARCHAR(32) NOT NULL, 
	quarantine TEXT NOT NULL, 
	confirmed_by TEXT NOT NULL, 
	withdrawn_by TEXT NOT NULL, 
	withdrawn_at DATETIME, 
	is_withdrawn_by_operator BOOLEAN NOT NULL, 
	PRIMARY KEY (id, uploader, is_operator)
);
CREATE TABLE training_measurement (
	id VARCHAR(32) NOT NULL, 
	model TEXT NOT NULL, 
	accelerator TEXT NOT NULL, 
	network TEXT NOT NULL, 
	framework TEXT NOT NULL, 
	framework_version TEXT NOT NULL, 
	method TEXT NOT NULL, 
	adapter TEXT NOT NULL, 
	adapter_targets TEXT NOT NULL, 
	weight_precision TEXT NOT NULL, 
	compute_precision TEXT NOT NULL, 
	precision_recipe TEXT NOT NULL, 
	gradient_precision TEXT NOT NULL, 
	state_precision TEXT NOT NULL, 
	sequence_parallel TEXT NOT NULL, 
	pipeline_schedule TEXT NOT NULL, 
	sharding TEXT NOT NULL, 
	recomputation TEXT NOT NULL, 
	offload TEXT NOT NULL, 
	optimizer TEXT NOT NULL, 
	packing TEXT NOT NULL, 
	flash_attention TEXT NOT NULL, 
	loss TEXT NOT NULL, 
	compiled TEXT NOT NULL, 
	status TEXT NOT NULL, 
	memory_kind TEXT NOT NULL, 
	date TEXT NOT NULL, 
	software TEXT NOT NULL, 
	derived TEXT NOT NULL, 
	campaign TEXT NOT NULL, 
	stack TEXT NOT NULL, 
	note TEXT NOT NULL, 
	n_accelerator DOUBLE, 
	n_node DOUBLE, 
	n_accelerator_per_node DOUBLE, 
	node_bandwidth_byte_per_s DOUBLE, 
	all_reduce_bandwidth_byte_per_s DOUBLE, 
	link_bandwidth_byte_per_s DOUBLE, 
	power_limit_w DOUBLE, 
	adapter_rank DOUBLE, 
	n_param_trained DOUBLE, 
	tp DOUBLE, 
	pp DOUBLE, 
	vp DOUBLE, 
	cp DOUBLE, 
	dp DOUBLE, 
	ep DOUBLE, 
	recomputed_layer_ratio DOUBLE, 
	n_micro_batch_sequence DOUBLE, 
	n_global_batch_sequence DOUBLE, 
	n_token_per_sequence DOUBLE, 
	n_gradient_accumulation DOUBLE, 
	step_time_s DOUBLE, 
	throughput_token_per_s DOUBLE, 
	model_flop_per_s_per_accelerator DOUBLE, 
	hardware_flop_per_s_per_accelerator DOUBLE, 
	mfu_ratio DOUBLE, 
	hfu_ratio DOUBLE, 
	memory_byte_per_accelerator DOUBLE, 
	duration_s DOUBLE, 
	uploader VARCHAR(100) NOT NULL, 
	is_operator BOOLEAN NOT NULL, 
	added_at DATETIME NOT NULL, 
	import_id VARCHAR(32) NOT NULL, 
	quarantine TEXT NOT NULL, 
	confirmed_by TEXT NOT NULL, 
	withdrawn_by TEXT NOT NULL, 
	withdrawn_at DATETIME, 
	is_withdrawn_by_operator BOOLEAN NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "training_measurement" VALUES('962da724891a2ba3425970be825c99da','mosaicml/mpt-125m','nvidia-a100-sxm-40gb','','llm-foundry','','pretrain','','','','bf16','amp-default','','','','','fsdp','none','none','','','','','','ok','','2023-01-30','','step_time_s','mosaic_llm_foundry','mosaicml','',8.0,1.0,8.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,2.0,512.0,16384.0,32.0,21.9672,381870.41,NULL,NULL,0.4023,0.4023,NULL,NULL,'',1,'2026-11-27 15:42:30.336619','8eb8323de43d4109a5b2c6a9449931f4','','','',NULL,0);
CREATE INDEX measurement_campaign ON measurement (campaign);
CREATE INDEX stack_row_owner_stack ON stack_row (owner, stack);
CREATE INDEX measurement_import ON measurement (import_id);
CREATE INDEX measurement_of_key ON measurement (model, uploader, added_at);
CREATE INDEX measurement_of_operator ON measurement (model, is_operator, added_at);
CREATE INDEX claim_import ON claim (import_id);
CREATE INDEX claim_of_key ON claim (uploader, added_at);
CREATE INDEX claim_of_operator ON claim (is_operator, added_at);
CREATE INDEX training_measurement_campaign ON training_measurement (campaign);
CREATE INDEX training_measurement_import ON training_measurement (import_id);
CREATE INDEX training_measurement_of_key ON training_measurement (model, uploader, added_at);
CREATE INDEX training_measurement_of_operator ON training_measurement (model, is_operator, added_at);
CREATE INDEX training_claim_import ON training_claim (import_id);
CREATE INDEX training_claim_of_key ON training_claim (uploader, added_at);
CREATE INDEX training_claim_of_operator ON training_claim (is_operator, added_at);
COMMIT;
