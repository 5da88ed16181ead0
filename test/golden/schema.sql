create table account_links (
  hash text collate "C" not null,
  purpose text not null,
  user_id text collate "C" not null,
  created_at timestamp(3) with time zone not null default now(),
  expires_at timestamp(3) with time zone not null,
  used_at timestamp(3) with time zone,
  constraint account_links_pkey PRIMARY KEY (hash),
  constraint account_links_purpose CHECK ((purpose = ANY (ARRAY['password_reset'::text, 'email_confirmation'::text, 'first_start'::text]))),
  constraint account_links_user FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);
CREATE INDEX account_links_expired ON public.account_links USING btree (expires_at);
CREATE INDEX account_links_of_user ON public.account_links USING btree (user_id, purpose, created_at);

create table accounts (
  id text collate "C" not null,
  name text not null,
  status text not null default 'active'::text,
  created_at timestamp(3) with time zone not null default now(),
  constraint accounts_pkey PRIMARY KEY (id),
  constraint accounts_status CHECK ((status = ANY (ARRAY['active'::text, 'suspended'::text])))
);

create table acme_accounts (
  authority text not null,
  key text not null,
  created_at timestamp(3) with time zone not null default now(),
  paused_until timestamp(3) with time zone,
  pause_reason text,
  constraint acme_accounts_pkey PRIMARY KEY (authority)
);

create table acme_challenges (
  token text collate "C" not null,
  key_authorization text not null,
  certificate_id text collate "C" not null,
  created_at timestamp(3) with time zone not null default now(),
  served_at timestamp(3) with time zone,
  constraint acme_challenges_certificate FOREIGN KEY (certificate_id) REFERENCES certificates(id) ON DELETE CASCADE,
  constraint acme_challenges_pkey PRIMARY KEY (token)
);
CREATE INDEX acme_challenges_of_certificate ON public.acme_challenges USING btree (certificate_id);

create table activity (
  id text collate "C" not null,
  project_id text collate "C",
  account_id text,
  action text not null,
  outcome text not null default 'succeeded'::text,
  actor jsonb not null,
  actor_id text,
  key_id text,
  resource_type text not null,
  resource_id text not null,
  resource_name text,
  changed_fields text[] not null default '{}'::text[],
  request_id text,
  created_at timestamp(3) with time zone not null,
  tx xid8 not null default pg_current_xact_id(),
  seq bigint not null default nextval('activity_seq'::regclass),
  reverts text,
  reverted_by text,
  revert_obstacle text default 'not_kept'::text,
  constraint activity_pkey PRIMARY KEY (id)
);
CREATE INDEX activity_arriving ON public.activity USING btree (project_id, tx, seq);
CREATE INDEX activity_by_action ON public.activity USING btree (project_id, action, id);
CREATE INDEX activity_by_actor ON public.activity USING btree (project_id, actor_id, id);
CREATE INDEX activity_by_age ON public.activity USING btree (created_at);
CREATE INDEX activity_by_project ON public.activity USING btree (project_id, id);
CREATE INDEX activity_by_resource ON public.activity USING btree (project_id, resource_id, id);
CREATE INDEX activity_by_resource_type ON public.activity USING btree (project_id, resource_type, id);
CREATE INDEX activity_of_all_by_action ON public.activity USING btree (lower(action), id);
CREATE INDEX activity_of_all_by_actor ON public.activity USING btree (COALESCE(actor_id, ''::text), id);

create table activity_undos (
  id text collate "C" not null,
  project_id text collate "C" not null,
  undo text not null,
  created_at timestamp(3) with time zone not null,
  constraint activity_undos_pkey PRIMARY KEY (id)
);
CREATE INDEX activity_undos_by_age ON public.activity_undos USING btree (created_at);
CREATE INDEX activity_undos_by_project ON public.activity_undos USING btree (project_id, id);

create table ai_usage (
  project_id text collate "C" not null,
  date date not null,
  model_id text collate "C" not null,
  requests bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  errors bigint not null,
  constraint ai_usage_pkey PRIMARY KEY (project_id, date, model_id),
  constraint ai_usage_project FOREIGN KEY (project_id) REFERENCES projects(id)
);
CREATE INDEX ai_usage_by_model ON public.ai_usage USING btree (project_id, model_id, date);

create table ai_usage_events (
  id text collate "C" not null,
  received_at timestamp(3) with time zone not null default now(),
  constraint ai_usage_events_pkey PRIMARY KEY (id)
);
CREATE INDEX ai_usage_events_by_age ON public.ai_usage_events USING btree (received_at);

create table alarm_evaluations (
  id boolean not null default true,
  holder text,
  held_until timestamp(3) with time zone not null default now(),
  evaluated_at timestamp(3) with time zone,
  constraint alarm_evaluations_id_check CHECK (id),
  constraint alarm_evaluations_pkey PRIMARY KEY (id)
);

create table alarm_notifiers (
  notifier_id text collate "C" not null,
  created_at timestamp(3) with time zone not null default now(),
  constraint alarm_notifiers_notifier_id_fkey FOREIGN KEY (notifier_id) REFERENCES notifiers(id) ON DELETE CASCADE,
  constraint alarm_notifiers_pkey PRIMARY KEY (notifier_id)
);

create table api_keys (
  id text collate "C" not null,
  kind text not null,
  name text not null,
  prefix text not null,
  hash text not null,
  user_id text collate "C",
  project_id text collate "C",
  scopes text[],
  project_ids text[],
  created_by text,
  created_at timestamp(3) with time zone not null default now(),
  expires_at timestamp(3) with time zone,
  last_used_at timestamp(3) with time zone,
  revoked_at timestamp(3) with time zone,
  client_id text,
  may_destroy boolean not null default true,
  paused_at timestamp(3) with time zone,
  resumed_at timestamp(3) with time zone,
  destroyed_at timestamp with time zone[] not null default '{}'::timestamp with time zone[],
  constraint api_keys_client CHECK (((kind = 'oauth'::text) = (client_id IS NOT NULL))),
  constraint api_keys_hash UNIQUE (hash),
  constraint api_keys_kind CHECK ((kind = ANY (ARRAY['personal'::text, 'project'::text, 'oauth'::text]))),
  constraint api_keys_owner CHECK ((((kind <> 'project'::text) = (user_id IS NOT NULL)) AND ((kind = 'project'::text) = (project_id IS NOT NULL)))),
  constraint api_keys_pkey PRIMARY KEY (id),
  constraint api_keys_project FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint api_keys_user FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);
CREATE INDEX api_keys_by_project ON public.api_keys USING btree (project_id, id);
CREATE INDEX api_keys_by_user ON public.api_keys USING btree (user_id, id);

create table applications (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  name text collate "C" not null,
  description text,
  region text not null,
  application_type text not null,
  source jsonb,
  preset text,
  default_hostname text not null,
  status text not null default 'new'::text,
  status_reason text,
  current_deployment_id text,
  auto_deploy_enabled boolean not null default false,
  settings jsonb not null default '{}'::jsonb,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  deployment_count integer not null default 0,
  tenant integer not null,
  deletion_protection boolean not null default false,
  constraint applications_hostname UNIQUE (default_hostname),
  constraint applications_pkey PRIMARY KEY (id),
  constraint applications_project FOREIGN KEY (project_id) REFERENCES projects(id)
);
CREATE UNIQUE INDEX applications__name_taken__name ON public.applications USING btree (project_id, name) WHERE (deleted_at IS NULL);
CREATE INDEX applications_by_git_integration ON public.applications USING btree (((source ->> 'git_integration_id'::text))) WHERE (((source ->> 'git_integration_id'::text) IS NOT NULL) AND (deleted_at IS NULL));
CREATE INDEX applications_by_id ON public.applications USING btree (project_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX applications_by_name ON public.applications USING btree (project_id, name, id) WHERE (deleted_at IS NULL);
CREATE INDEX applications_by_region ON public.applications USING btree (project_id, region, id) WHERE (deleted_at IS NULL);
CREATE INDEX applications_by_shared_repository ON public.applications USING btree (((source ->> 'shared_repository_id'::text))) WHERE (((source ->> 'shared_repository_id'::text) IS NOT NULL) AND (deleted_at IS NULL));
CREATE INDEX applications_by_status ON public.applications USING btree (project_id, status, id) WHERE (deleted_at IS NULL);
CREATE INDEX applications_by_type ON public.applications USING btree (project_id, application_type, id) WHERE (deleted_at IS NULL);
CREATE INDEX applications_by_update ON public.applications USING btree (project_id, updated_at, id) WHERE (deleted_at IS NULL);
CREATE INDEX applications_due ON public.applications USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE UNIQUE INDEX applications_tenant ON public.applications USING btree (tenant);

create table approvals (
  id text collate "C" not null,
  version bigint not null default 1,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  status text collate "C" not null default 'pending'::text,
  fingerprint text collate "C" not null,
  is_open boolean not null default true,
  operation text not null,
  summary text not null,
  sealed_input text not null,
  if_match text,
  resource jsonb,
  affects jsonb not null,
  requested_by jsonb not null,
  requester_id text collate "C",
  key_id text collate "C",
  decided_by jsonb,
  decider_id text collate "C",
  expires_at timestamp(3) with time zone not null,
  decided_at timestamp(3) with time zone,
  used_at timestamp(3) with time zone,
  constraint approvals_pkey PRIMARY KEY (id),
  constraint approvals_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint approvals_status CHECK ((status = ANY (ARRAY['pending'::text, 'approved'::text, 'refused'::text, 'used'::text, 'expired'::text])))
);
CREATE INDEX approvals_by_age ON public.approvals USING btree (created_at);
CREATE INDEX approvals_by_id ON public.approvals USING btree (project_id, id);
CREATE INDEX approvals_by_status ON public.approvals USING btree (project_id, status, id);
CREATE UNIQUE INDEX approvals_open ON public.approvals USING btree (fingerprint) WHERE is_open;

create table authorities (
  id text collate "C" not null,
  certificate text not null,
  key text not null,
  created_at timestamp(3) with time zone not null default now(),
  constraint authorities_pkey PRIMARY KEY (id)
);

create table auto_deploys (
  id text collate "C" not null,
  enabled boolean not null default false,
  branch text,
  wait_for_checks boolean not null default false,
  paths jsonb not null default '[]'::jsonb,
  status_reason text,
  last_checked_at timestamp(3) with time zone,
  last_seen_sha text,
  watched text,
  failures integer not null default 0,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  awaited_sha text,
  awaited_since timestamp(3) with time zone,
  constraint auto_deploys_application FOREIGN KEY (id) REFERENCES applications(id) ON DELETE CASCADE,
  constraint auto_deploys_pkey PRIMARY KEY (id)
);
CREATE INDEX auto_deploys_due ON public.auto_deploys USING btree (next_at) WHERE (next_at IS NOT NULL);

create table bucket_access_keys (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  name text collate "C" not null,
  access_key_id text collate "C" not null,
  sealed_secret text not null,
  grants jsonb not null,
  bucket_ids text[] not null,
  enabled boolean not null,
  expires_at timestamp(3) with time zone,
  last_used_at timestamp(3) with time zone,
  status text not null,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  constraint bucket_access_keys_pkey PRIMARY KEY (id),
  constraint bucket_access_keys_project_id_foreign FOREIGN KEY (project_id) REFERENCES projects(id)
);
CREATE UNIQUE INDEX bucket_access_keys_access_key_id ON public.bucket_access_keys USING btree (access_key_id);
CREATE INDEX bucket_access_keys_by_bucket ON public.bucket_access_keys USING gin (bucket_ids);
CREATE INDEX bucket_access_keys_by_id ON public.bucket_access_keys USING btree (project_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX bucket_access_keys_by_name ON public.bucket_access_keys USING btree (project_id, name, id) WHERE (deleted_at IS NULL);
CREATE INDEX bucket_access_keys_by_status ON public.bucket_access_keys USING btree (project_id, status, id) WHERE (deleted_at IS NULL);
CREATE INDEX bucket_access_keys_by_use ON public.bucket_access_keys USING btree (project_id, last_used_at, id) WHERE (deleted_at IS NULL);
CREATE INDEX bucket_access_keys_by_use_last ON public.bucket_access_keys USING btree (project_id, last_used_at DESC NULLS LAST, id DESC) WHERE (deleted_at IS NULL);
CREATE INDEX bucket_access_keys_due ON public.bucket_access_keys USING btree (next_at) WHERE (next_at IS NOT NULL);

create table bucket_days (
  bucket_id text collate "C" not null,
  day date not null,
  size_bytes bigint not null default 0,
  egress_bytes bigint not null default 0,
  requests bigint not null default 0,
  constraint bucket_days_bucket_id_fkey FOREIGN KEY (bucket_id) REFERENCES buckets(id) ON DELETE CASCADE,
  constraint bucket_days_pkey PRIMARY KEY (bucket_id, day)
);

create table bucket_garbage (
  file_id text collate "C" not null,
  bucket_id text collate "C" not null,
  created_at timestamp(3) with time zone not null default now(),
  constraint bucket_garbage_pkey PRIMARY KEY (file_id)
);

create table bucket_object_parts (
  object_id bigint not null,
  number integer not null,
  file_id text collate "C" not null,
  size bigint not null,
  checksums jsonb not null,
  constraint bucket_object_parts_file_id_key UNIQUE (file_id),
  constraint bucket_object_parts_object_id_fkey FOREIGN KEY (object_id) REFERENCES bucket_objects(id) ON DELETE CASCADE,
  constraint bucket_object_parts_pkey PRIMARY KEY (object_id, number)
);

create table bucket_objects (
  id bigint not null,
  bucket_id text collate "C" not null,
  key text collate "C" not null,
  version_id text collate "C" not null,
  is_latest boolean not null,
  is_delete_marker boolean not null,
  size bigint not null,
  etag text not null,
  file_id text collate "C",
  part_count integer,
  upload_id text collate "C",
  modified_at timestamp(3) with time zone not null,
  noncurrent_at timestamp(3) with time zone,
  metadata jsonb not null,
  tags jsonb,
  is_public boolean not null default false,
  retain_mode text,
  retain_until timestamp(3) with time zone,
  legal_hold boolean,
  constraint bucket_objects_pkey PRIMARY KEY (id),
  constraint bucket_objects_retention CHECK (((retain_mode IS NULL) = (retain_until IS NULL)))
);
CREATE UNIQUE INDEX bucket_objects_current ON public.bucket_objects USING btree (bucket_id, key) WHERE (is_latest AND (NOT is_delete_marker));
CREATE UNIQUE INDEX bucket_objects_file ON public.bucket_objects USING btree (file_id) WHERE (file_id IS NOT NULL);
CREATE UNIQUE INDEX bucket_objects_versions ON public.bucket_objects USING btree (bucket_id, key, id);

create table bucket_totals (
  project_id text collate "C" not null,
  size_bytes bigint not null default 0,
  constraint bucket_totals_pkey PRIMARY KEY (project_id),
  constraint bucket_totals_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE
);

create table bucket_upload_parts (
  upload_id text collate "C" not null,
  number integer not null,
  file_id text collate "C" not null,
  size bigint not null,
  etag text not null,
  checksums jsonb not null,
  modified_at timestamp(3) with time zone not null default now(),
  constraint bucket_upload_parts_file_id_key UNIQUE (file_id),
  constraint bucket_upload_parts_pkey PRIMARY KEY (upload_id, number),
  constraint bucket_upload_parts_upload_id_fkey FOREIGN KEY (upload_id) REFERENCES bucket_uploads(id) ON DELETE CASCADE
);

create table bucket_uploads (
  id text collate "C" not null,
  bucket_id text collate "C" not null,
  key text collate "C" not null,
  object jsonb not null,
  created_at timestamp(3) with time zone not null default now(),
  constraint bucket_uploads_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX bucket_uploads_of_key ON public.bucket_uploads USING btree (bucket_id, key, id);

create table bucket_usage (
  bucket_id text collate "C" not null,
  object_count bigint not null default 0,
  size_bytes bigint not null default 0,
  noncurrent_size_bytes bigint not null default 0,
  upload_bytes bigint not null default 0,
  constraint bucket_usage_bucket_id_fkey FOREIGN KEY (bucket_id) REFERENCES buckets(id) ON DELETE CASCADE,
  constraint bucket_usage_pkey PRIMARY KEY (bucket_id)
);

create table buckets (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  name text collate "C" not null,
  region text collate "C" not null,
  access text not null,
  versioning boolean not null,
  versioned_at timestamp(3) with time zone,
  website jsonb,
  quota_gb integer,
  cors jsonb not null default '[]'::jsonb,
  lifecycle jsonb not null default '[]'::jsonb,
  policy jsonb not null default '[]'::jsonb,
  object_count bigint not null default '0'::bigint,
  size_bytes bigint not null default '0'::bigint,
  lifecycle_at timestamp(3) with time zone,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  policy_document text,
  object_lock boolean not null default false,
  default_retention jsonb,
  public_access_block jsonb,
  object_ownership text,
  parked_at timestamp(3) with time zone,
  deletion_protection boolean not null default false,
  constraint buckets_lock_versions CHECK ((versioning OR (NOT object_lock))),
  constraint buckets_object_ownership CHECK ((object_ownership = ANY (ARRAY['BucketOwnerEnforced'::text, 'BucketOwnerPreferred'::text, 'ObjectWriter'::text]))),
  constraint buckets_pkey PRIMARY KEY (id),
  constraint buckets_project_id_foreign FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint buckets_retention_of_locks CHECK ((object_lock OR (default_retention IS NULL)))
);
CREATE UNIQUE INDEX buckets__name_taken__name ON public.buckets USING btree (name) WHERE (parked_at IS NULL);
CREATE INDEX buckets_by_access ON public.buckets USING btree (project_id, access, id) WHERE (deleted_at IS NULL);
CREATE INDEX buckets_by_id ON public.buckets USING btree (project_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX buckets_by_name ON public.buckets USING btree (project_id, name, id) WHERE (deleted_at IS NULL);
CREATE INDEX buckets_by_region ON public.buckets USING btree (project_id, region, id) WHERE (deleted_at IS NULL);
CREATE INDEX buckets_by_size ON public.buckets USING btree (project_id, size_bytes, id) WHERE (deleted_at IS NULL);
CREATE INDEX buckets_due ON public.buckets USING btree (next_at) WHERE (next_at IS NOT NULL);

create table cdn_caches (
  id text collate "C" not null,
  expires_at timestamp(3) with time zone not null,
  constraint cdn_caches_pkey PRIMARY KEY (id)
);

create table cdn_purge_nodes (
  cdn_purge_id text collate "C" not null,
  node text collate "C" not null,
  completed_at timestamp(3) with time zone not null default now(),
  constraint cdn_purge_nodes_pkey PRIMARY KEY (cdn_purge_id, node),
  constraint cdn_purge_nodes_purge FOREIGN KEY (cdn_purge_id) REFERENCES cdn_purges(id) ON DELETE CASCADE
);

create table cdn_purges (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  cdn_zone_id text collate "C" not null,
  type text not null,
  values text[],
  status text not null default 'pending'::text,
  status_reason text,
  created_by jsonb not null,
  completed_at timestamp(3) with time zone,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  recorded_at timestamp(3) with time zone not null default now(),
  constraint cdn_purges_cdn_zone FOREIGN KEY (cdn_zone_id) REFERENCES cdn_zones(id) ON DELETE CASCADE,
  constraint cdn_purges_pkey PRIMARY KEY (id),
  constraint cdn_purges_status CHECK ((status = ANY (ARRAY['pending'::text, 'completed'::text, 'failed'::text]))),
  constraint cdn_purges_type CHECK ((type = ANY (ARRAY['all'::text, 'urls'::text, 'prefixes'::text, 'tags'::text])))
);
CREATE INDEX cdn_purges_by_id ON public.cdn_purges USING btree (cdn_zone_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX cdn_purges_by_status ON public.cdn_purges USING btree (cdn_zone_id, status, id) WHERE (deleted_at IS NULL);
CREATE INDEX cdn_purges_by_type ON public.cdn_purges USING btree (cdn_zone_id, type, id) WHERE (deleted_at IS NULL);
CREATE INDEX cdn_purges_due ON public.cdn_purges USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX cdn_purges_recorded ON public.cdn_purges USING btree (recorded_at);

create table cdn_zones (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  name text collate "C" not null,
  origin jsonb not null,
  hostname text collate "C" not null,
  enabled boolean not null,
  cache jsonb not null,
  compression boolean not null,
  force_https boolean not null,
  status text not null default 'provisioning'::text,
  status_reason text,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  deletion_protection boolean not null default false,
  constraint cdn_zones_pkey PRIMARY KEY (id),
  constraint cdn_zones_status CHECK ((status = ANY (ARRAY['provisioning'::text, 'active'::text, 'updating'::text, 'disabled'::text, 'failed'::text])))
);
CREATE UNIQUE INDEX cdn_zones__name_taken__name ON public.cdn_zones USING btree (project_id, name) WHERE (deleted_at IS NULL);
CREATE INDEX cdn_zones_by_id ON public.cdn_zones USING btree (project_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX cdn_zones_by_status ON public.cdn_zones USING btree (project_id, status, id) WHERE (deleted_at IS NULL);
CREATE INDEX cdn_zones_due ON public.cdn_zones USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE UNIQUE INDEX cdn_zones_hostname ON public.cdn_zones USING btree (hostname);

create table certificate_orders (
  id bigint not null,
  authority text not null,
  hostname text collate "C" not null,
  registered_domain text collate "C" not null,
  is_renewal boolean not null,
  outcome text not null default 'open'::text,
  created_at timestamp(3) with time zone not null default now(),
  account_id text collate "C",
  constraint certificate_orders_outcome CHECK ((outcome = ANY (ARRAY['open'::text, 'issued'::text, 'failed'::text]))),
  constraint certificate_orders_pkey PRIMARY KEY (id)
);
CREATE INDEX certificate_orders_of_name ON public.certificate_orders USING btree (hostname, created_at);
CREATE INDEX certificate_orders_recent ON public.certificate_orders USING btree (authority, created_at);

create table certificates (
  id text collate "C" not null,
  domain_id text collate "C",
  authority text,
  chain text,
  key text,
  issuer text,
  issued_at timestamp(3) with time zone,
  expires_at timestamp(3) with time zone,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  application_id text collate "C",
  preview_id text collate "C",
  cdn_zone_id text collate "C",
  reason text,
  reason_since timestamp(3) with time zone,
  is_waiting boolean not null default false,
  unfinished text,
  renewal jsonb,
  warned_at timestamp(3) with time zone,
  constraint certificates_application FOREIGN KEY (application_id) REFERENCES applications(id) ON DELETE CASCADE,
  constraint certificates_cdn_zone FOREIGN KEY (cdn_zone_id) REFERENCES cdn_zones(id) ON DELETE CASCADE,
  constraint certificates_domain FOREIGN KEY (domain_id) REFERENCES domains(id) ON DELETE CASCADE,
  constraint certificates_pkey PRIMARY KEY (id),
  constraint certificates_preview FOREIGN KEY (preview_id) REFERENCES previews(id) ON DELETE CASCADE,
  constraint certificates_whole CHECK (((chain IS NULL) = (key IS NULL)))
);
CREATE INDEX certificates_due ON public.certificates USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX certificates_of_application ON public.certificates USING btree (application_id) WHERE (application_id IS NOT NULL);
CREATE INDEX certificates_of_cdn_zone ON public.certificates USING btree (cdn_zone_id) WHERE (cdn_zone_id IS NOT NULL);
CREATE UNIQUE INDEX certificates_of_domain ON public.certificates USING btree (domain_id);
CREATE INDEX certificates_of_preview ON public.certificates USING btree (preview_id) WHERE (preview_id IS NOT NULL);

create table check_results (
  id text collate "C" not null,
  project_id text collate "C" not null,
  observer_id text collate "C" not null,
  checked_at timestamp(3) with time zone not null,
  status text not null,
  region text not null,
  response_time_ms real,
  status_code integer,
  value double precision,
  error text,
  incident_id text collate "C",
  timings jsonb,
  certificate_expires_at timestamp(3) with time zone
);
CREATE INDEX check_results_by_region ON ONLY public.check_results USING btree (observer_id, region, id);
CREATE INDEX check_results_by_status ON ONLY public.check_results USING btree (observer_id, status, id);
CREATE INDEX check_results_failed ON ONLY public.check_results USING btree (observer_id, id) WHERE (status = 'fail'::text);
CREATE INDEX check_results_of_observer ON ONLY public.check_results USING btree (observer_id, id);

create table cluster_facts (
  name text not null,
  value jsonb not null,
  updated_at timestamp(3) with time zone not null default CURRENT_TIMESTAMP,
  constraint cluster_facts_pkey PRIMARY KEY (name)
);

create table cron_schedules (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  project_id text collate "C" not null,
  application_id text collate "C" not null,
  name text collate "C" not null,
  cron text not null,
  time_zone text not null,
  command text not null,
  process_type text,
  application_type text,
  timeout_seconds integer not null,
  concurrency text not null,
  missed text not null,
  enabled boolean not null,
  status_reason text,
  next_run_at timestamp(3) with time zone,
  last_run jsonb,
  failures_in_a_row integer not null default 0,
  constraint cron_schedules_application FOREIGN KEY (application_id) REFERENCES applications(id) ON DELETE CASCADE,
  constraint cron_schedules_concurrency CHECK ((concurrency = ANY (ARRAY['forbid'::text, 'allow'::text, 'replace'::text]))),
  constraint cron_schedules_missed CHECK ((missed = ANY (ARRAY['skip'::text, 'run_once'::text]))),
  constraint cron_schedules_next_run CHECK ((enabled = (next_run_at IS NOT NULL))),
  constraint cron_schedules_pkey PRIMARY KEY (id),
  constraint cron_schedules_project FOREIGN KEY (project_id) REFERENCES projects(id)
);
CREATE UNIQUE INDEX cron_schedules__name_taken__name ON public.cron_schedules USING btree (application_id, name) WHERE (deleted_at IS NULL);
CREATE INDEX cron_schedules_by_enabled ON public.cron_schedules USING btree (application_id, enabled, id);
CREATE INDEX cron_schedules_by_id ON public.cron_schedules USING btree (application_id, id);
CREATE INDEX cron_schedules_by_name ON public.cron_schedules USING btree (application_id, name, id);
CREATE INDEX cron_schedules_due ON public.cron_schedules USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX cron_schedules_of_project ON public.cron_schedules USING btree (project_id);

create table database_attachments (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  database_id text collate "C" not null,
  application_id text collate "C" not null,
  endpoint_id text collate "C" not null,
  user_id text collate "C" not null,
  env_prefix text collate "C" not null,
  deleted_at timestamp(3) with time zone,
  constraint database_attachments_application FOREIGN KEY (application_id) REFERENCES applications(id),
  constraint database_attachments_database FOREIGN KEY (database_id) REFERENCES databases(id) ON DELETE CASCADE,
  constraint database_attachments_endpoint FOREIGN KEY (endpoint_id) REFERENCES database_endpoints(id),
  constraint database_attachments_pkey PRIMARY KEY (id),
  constraint database_attachments_project FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint database_attachments_user FOREIGN KEY (user_id) REFERENCES database_users(id)
);
CREATE UNIQUE INDEX database_attachments__already_exists ON public.database_attachments USING btree (database_id, application_id);
CREATE INDEX database_attachments_by_application ON public.database_attachments USING btree (application_id, id);
CREATE INDEX database_attachments_by_application_prefix ON public.database_attachments USING btree (application_id, env_prefix, id);
CREATE INDEX database_attachments_by_id ON public.database_attachments USING btree (database_id, id);
CREATE INDEX database_attachments_by_prefix ON public.database_attachments USING btree (database_id, env_prefix, id);
CREATE INDEX database_attachments_of_endpoint ON public.database_attachments USING btree (endpoint_id);
CREATE INDEX database_attachments_of_project ON public.database_attachments USING btree (project_id);
CREATE INDEX database_attachments_of_user ON public.database_attachments USING btree (user_id);

create table database_backups (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  database_id text collate "C" not null,
  type text not null,
  note text,
  engine_version text not null,
  size_bytes bigint,
  started_at timestamp(3) with time zone,
  finished_at timestamp(3) with time zone,
  expires_at timestamp(3) with time zone,
  manifest jsonb,
  status text not null default 'pending'::text,
  status_reason text,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  proof_status text not null default 'unproven'::text,
  proven_at timestamp(3) with time zone,
  proof_seconds integer,
  proof_rows bigint,
  proof_failure text,
  proof_requested_at timestamp(3) with time zone,
  proof_due_at timestamp(3) with time zone,
  constraint database_backups_database FOREIGN KEY (database_id) REFERENCES databases(id),
  constraint database_backups_pkey PRIMARY KEY (id),
  constraint database_backups_project FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint database_backups_proof_status CHECK ((proof_status = ANY (ARRAY['unproven'::text, 'waiting'::text, 'running'::text, 'proven'::text, 'failed'::text]))),
  constraint database_backups_type CHECK ((type = ANY (ARRAY['scheduled'::text, 'manual'::text])))
);
CREATE UNIQUE INDEX database_backups__resource_busy ON public.database_backups USING btree (database_id) WHERE ((type = 'manual'::text) AND (status = ANY (ARRAY['pending'::text, 'running'::text])) AND (deleted_at IS NULL));
CREATE INDEX database_backups_by_expiry ON public.database_backups USING btree (expires_at) WHERE ((expires_at IS NOT NULL) AND (deleted_at IS NULL));
CREATE INDEX database_backups_by_id ON public.database_backups USING btree (database_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX database_backups_by_proof ON public.database_backups USING btree (proof_status) WHERE ((proof_status = ANY (ARRAY['waiting'::text, 'running'::text])) AND (deleted_at IS NULL));
CREATE INDEX database_backups_by_status ON public.database_backups USING btree (database_id, status, id) WHERE (deleted_at IS NULL);
CREATE INDEX database_backups_by_type ON public.database_backups USING btree (database_id, type, id) WHERE (deleted_at IS NULL);
CREATE INDEX database_backups_due ON public.database_backups USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX database_backups_of_database ON public.database_backups USING btree (database_id);
CREATE INDEX database_backups_of_project ON public.database_backups USING btree (project_id);
CREATE INDEX database_backups_of_project_by_id ON public.database_backups USING btree (project_id, id) WHERE (deleted_at IS NULL);

create table database_endpoints (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  database_id text collate "C" not null,
  replica_id text collate "C",
  name text collate "C" not null,
  access text not null,
  target text not null,
  allowed_sources jsonb not null default '[]'::jsonb,
  pool_mode text,
  pool_size integer,
  port integer not null,
  is_default boolean not null default false,
  status text not null default 'provisioning'::text,
  status_reason text,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  host text,
  constraint database_endpoints_access CHECK ((access = ANY (ARRAY['private'::text, 'public'::text]))),
  constraint database_endpoints_database FOREIGN KEY (database_id) REFERENCES databases(id),
  constraint database_endpoints_pkey PRIMARY KEY (id),
  constraint database_endpoints_pool CHECK (((pool_mode IS NULL) = (pool_size IS NULL))),
  constraint database_endpoints_project FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint database_endpoints_replica FOREIGN KEY (replica_id) REFERENCES database_replicas(id),
  constraint database_endpoints_target CHECK (((target = ANY (ARRAY['primary'::text, 'replicas'::text])) AND ((replica_id IS NULL) OR (target = 'replicas'::text))))
);
CREATE UNIQUE INDEX database_endpoints__name_taken__name ON public.database_endpoints USING btree (database_id, name) WHERE (deleted_at IS NULL);
CREATE INDEX database_endpoints_by_access ON public.database_endpoints USING btree (database_id, access, id) WHERE (deleted_at IS NULL);
CREATE INDEX database_endpoints_by_id ON public.database_endpoints USING btree (database_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX database_endpoints_by_name ON public.database_endpoints USING btree (database_id, name, id) WHERE (deleted_at IS NULL);
CREATE INDEX database_endpoints_by_status ON public.database_endpoints USING btree (database_id, status, id) WHERE (deleted_at IS NULL);
CREATE INDEX database_endpoints_by_target ON public.database_endpoints USING btree (database_id, target, id) WHERE (deleted_at IS NULL);
CREATE UNIQUE INDEX database_endpoints_default ON public.database_endpoints USING btree (database_id) WHERE (is_default AND (deleted_at IS NULL));
CREATE INDEX database_endpoints_due ON public.database_endpoints USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX database_endpoints_of_database ON public.database_endpoints USING btree (database_id);
CREATE INDEX database_endpoints_of_project ON public.database_endpoints USING btree (project_id);
CREATE INDEX database_endpoints_of_replica ON public.database_endpoints USING btree (replica_id) WHERE (replica_id IS NOT NULL);

create table database_extensions (
  database_id text collate "C" not null,
  name text collate "C" not null,
  status text not null,
  status_reason text,
  version text,
  constraint database_extensions_database FOREIGN KEY (database_id) REFERENCES databases(id) ON DELETE CASCADE,
  constraint database_extensions_pkey PRIMARY KEY (database_id, name),
  constraint database_extensions_status CHECK ((status = ANY (ARRAY['enabling'::text, 'enabled'::text, 'disabling'::text, 'failed'::text])))
);

create table database_imports (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  project_id text collate "C" not null,
  database_id text collate "C" not null,
  mode text not null,
  source_address text,
  sealed_source text,
  bytes_max bigint not null,
  exclude text[] not null default '{}'::text[],
  size_bytes bigint,
  bytes_read bigint not null default '0'::bigint,
  tables jsonb not null default '[]'::jsonb,
  not_taken_over jsonb not null default '[]'::jsonb,
  upload_expires_at timestamp(3) with time zone,
  cancel_requested_at timestamp(3) with time zone,
  started_at timestamp(3) with time zone,
  finished_at timestamp(3) with time zone,
  status text not null,
  status_reason text,
  phase text,
  lag_bytes bigint,
  lag_seconds integer,
  source_slot text,
  finish_requested_at timestamp(3) with time zone,
  make_source_read_only boolean not null default false,
  constraint database_imports_database FOREIGN KEY (database_id) REFERENCES databases(id) ON DELETE CASCADE,
  constraint database_imports_phase CHECK ((phase = ANY (ARRAY['copying'::text, 'following'::text, 'finishing'::text]))),
  constraint database_imports_pkey PRIMARY KEY (id),
  constraint database_imports_project FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint database_imports_status CHECK ((status = ANY (ARRAY['awaiting_upload'::text, 'pending'::text, 'running'::text, 'completed'::text, 'failed'::text, 'canceled'::text])))
);
CREATE UNIQUE INDEX database_imports__resource_busy ON public.database_imports USING btree (database_id) WHERE ((status = ANY (ARRAY['awaiting_upload'::text, 'pending'::text, 'running'::text])) AND (deleted_at IS NULL));
CREATE INDEX database_imports_by_id ON public.database_imports USING btree (database_id, id);
CREATE INDEX database_imports_by_status ON public.database_imports USING btree (database_id, status, id);
CREATE INDEX database_imports_due ON public.database_imports USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX database_imports_of_project ON public.database_imports USING btree (project_id);

create table database_ports (
  port integer not null,
  owner_id text collate "C" not null,
  constraint database_ports_owner UNIQUE (owner_id),
  constraint database_ports_pkey PRIMARY KEY (port)
);

create table database_proofs (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  database_id text collate "C" not null,
  backup_id text collate "C" not null,
  engine text not null,
  port integer not null,
  started_at timestamp(3) with time zone,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  constraint database_proofs_pkey PRIMARY KEY (id)
);
CREATE INDEX database_proofs_due ON public.database_proofs USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE UNIQUE INDEX database_proofs_one ON public.database_proofs USING btree ((true));

create table database_replicas (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  database_id text collate "C" not null,
  name text collate "C" not null,
  region text not null,
  database_package text not null,
  nodes integer not null,
  replication_lag_seconds double precision,
  status text not null default 'provisioning'::text,
  status_reason text,
  server_id text collate "C" not null,
  port integer not null,
  tenant integer not null default nextval('applications_tenant_seq'::regclass),
  tls_certificate text,
  tls_key text,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  constraint database_replicas_database FOREIGN KEY (database_id) REFERENCES databases(id),
  constraint database_replicas_pkey PRIMARY KEY (id),
  constraint database_replicas_project FOREIGN KEY (project_id) REFERENCES projects(id)
);
CREATE UNIQUE INDEX database_replicas__name_taken__name ON public.database_replicas USING btree (database_id, name) WHERE (deleted_at IS NULL);
CREATE INDEX database_replicas_by_id ON public.database_replicas USING btree (database_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX database_replicas_by_name ON public.database_replicas USING btree (database_id, name, id) WHERE (deleted_at IS NULL);
CREATE INDEX database_replicas_by_region ON public.database_replicas USING btree (database_id, region, id) WHERE (deleted_at IS NULL);
CREATE INDEX database_replicas_by_status ON public.database_replicas USING btree (database_id, status, id) WHERE (deleted_at IS NULL);
CREATE INDEX database_replicas_due ON public.database_replicas USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX database_replicas_of_database ON public.database_replicas USING btree (database_id);
CREATE INDEX database_replicas_of_project ON public.database_replicas USING btree (project_id);
CREATE UNIQUE INDEX database_replicas_server ON public.database_replicas USING btree (server_id);

create table database_users (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  database_id text collate "C" not null,
  username text collate "C" not null,
  access text not null,
  is_default boolean not null default false,
  password text not null,
  applied_version bigint not null default '0'::bigint,
  login text,
  previous_password text,
  previous_login text,
  previous_until timestamp(3) with time zone,
  applied_at timestamp(3) with time zone,
  constraint database_users_access CHECK ((access = ANY (ARRAY['admin'::text, 'read_write'::text, 'read_only'::text]))),
  constraint database_users_database FOREIGN KEY (database_id) REFERENCES databases(id) ON DELETE CASCADE,
  constraint database_users_pkey PRIMARY KEY (id),
  constraint database_users_project FOREIGN KEY (project_id) REFERENCES projects(id)
);
CREATE UNIQUE INDEX database_users__already_exists__username ON public.database_users USING btree (database_id, username);
CREATE INDEX database_users_by_access ON public.database_users USING btree (database_id, access, id);
CREATE INDEX database_users_by_id ON public.database_users USING btree (database_id, id);
CREATE INDEX database_users_by_name ON public.database_users USING btree (database_id, username, id);
CREATE UNIQUE INDEX database_users_default ON public.database_users USING btree (database_id) WHERE is_default;
CREATE INDEX database_users_of_project ON public.database_users USING btree (project_id);
CREATE INDEX database_users_rotating ON public.database_users USING btree (database_id) WHERE (previous_password IS NOT NULL);

create table databases (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  name text collate "C" not null,
  engine text not null,
  engine_version text not null,
  wanted_version text,
  database_package text not null,
  nodes integer not null,
  storage_gb integer not null,
  region text not null,
  database_name text,
  username text not null,
  backup_schedule jsonb not null,
  maintenance_window jsonb not null,
  deletion_protection boolean not null default false,
  restore_from jsonb,
  restoring_from jsonb,
  point_in_time_window jsonb,
  running boolean not null default true,
  status text not null default 'provisioning'::text,
  status_reason text,
  server_id text collate "C" not null,
  port integer not null,
  tenant integer not null default nextval('applications_tenant_seq'::regclass),
  tls_certificate text,
  tls_key text,
  admin_password text not null,
  system_identifier text,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  on_cluster boolean not null default false,
  proof_assertion text,
  recovery_seconds integer,
  proof_tried_at timestamp(3) with time zone,
  mask jsonb,
  unmasked_columns jsonb not null default '[]'::jsonb,
  preview_id text collate "C",
  preview_of text collate "C",
  constraint databases_pkey PRIMARY KEY (id),
  constraint databases_project FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint databases_storage CHECK ((storage_gb > 0))
);
CREATE UNIQUE INDEX databases__already_exists__preview_id ON public.databases USING btree (preview_id, preview_of) WHERE ((preview_id IS NOT NULL) AND (deleted_at IS NULL));
CREATE UNIQUE INDEX databases__name_taken__name ON public.databases USING btree (project_id, name) WHERE (deleted_at IS NULL);
CREATE INDEX databases_by_engine ON public.databases USING btree (project_id, engine, id) WHERE (deleted_at IS NULL);
CREATE INDEX databases_by_id ON public.databases USING btree (project_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX databases_by_name ON public.databases USING btree (project_id, name, id) WHERE (deleted_at IS NULL);
CREATE INDEX databases_by_package ON public.databases USING btree (project_id, database_package, id) WHERE (deleted_at IS NULL);
CREATE INDEX databases_by_region ON public.databases USING btree (project_id, region, id) WHERE (deleted_at IS NULL);
CREATE INDEX databases_by_status ON public.databases USING btree (project_id, status, id) WHERE (deleted_at IS NULL);
CREATE INDEX databases_by_update ON public.databases USING btree (project_id, updated_at, id) WHERE (deleted_at IS NULL);
CREATE INDEX databases_due ON public.databases USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX databases_of_project ON public.databases USING btree (project_id);
CREATE UNIQUE INDEX databases_server ON public.databases USING btree (server_id);
CREATE UNIQUE INDEX databases_tenant ON public.databases USING btree (tenant);

create table deleted_resources (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  resource_type text not null,
  resource_id text collate "C" not null,
  name text collate "C",
  kept_until timestamp(3) with time zone not null,
  along text[] collate "C" not null default '{}'::text[],
  memo jsonb not null default '{}'::jsonb,
  purge_from timestamp(3) with time zone not null default now(),
  constraint deleted_resources_pkey PRIMARY KEY (id),
  constraint deleted_resources_project_id_foreign FOREIGN KEY (project_id) REFERENCES projects(id)
);
CREATE INDEX deleted_resources_along ON public.deleted_resources USING gin (along);
CREATE INDEX deleted_resources_by_id ON public.deleted_resources USING btree (project_id, id);
CREATE INDEX deleted_resources_by_name ON public.deleted_resources USING btree (project_id, name, id);
CREATE INDEX deleted_resources_by_type ON public.deleted_resources USING btree (project_id, resource_type, id);
CREATE INDEX deleted_resources_due ON public.deleted_resources USING btree (kept_until);
CREATE UNIQUE INDEX deleted_resources_resource ON public.deleted_resources USING btree (resource_id);

create table deployments (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  application_id text collate "C" not null,
  preview_id text collate "C",
  number integer not null,
  branch text collate "C",
  commit_sha text collate "C",
  image text,
  clear_cache boolean not null default false,
  trigger text not null,
  source_deployment_id text,
  commit_message text,
  commit_author text,
  status text not null default 'queued'::text,
  status_reason text,
  created_by jsonb not null,
  started_at timestamp(3) with time zone,
  finished_at timestamp(3) with time zone,
  activated_at timestamp(3) with time zone,
  source jsonb not null,
  plan jsonb,
  artifact_id text,
  artifact_kept boolean not null default false,
  release_id text collate "C",
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  on_cluster boolean not null default false,
  steps jsonb not null default '[]'::jsonb,
  files_on text,
  promoted_from jsonb,
  constraint deployments_application FOREIGN KEY (application_id) REFERENCES applications(id),
  constraint deployments_pkey PRIMARY KEY (id),
  constraint deployments_preview FOREIGN KEY (preview_id) REFERENCES previews(id),
  constraint deployments_project FOREIGN KEY (project_id) REFERENCES projects(id)
);
CREATE INDEX deployments_by_branch ON public.deployments USING btree (application_id, branch, id) WHERE (deleted_at IS NULL);
CREATE INDEX deployments_by_commit ON public.deployments USING btree (application_id, commit_sha, id) WHERE (deleted_at IS NULL);
CREATE INDEX deployments_by_id ON public.deployments USING btree (application_id, id) WHERE ((preview_id IS NULL) AND (deleted_at IS NULL));
CREATE INDEX deployments_by_number ON public.deployments USING btree (application_id, preview_id, number, id) WHERE (deleted_at IS NULL);
CREATE INDEX deployments_by_preview ON public.deployments USING btree (application_id, preview_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX deployments_by_status ON public.deployments USING btree (application_id, status, id) WHERE (deleted_at IS NULL);
CREATE INDEX deployments_by_trigger ON public.deployments USING btree (application_id, trigger, id) WHERE (deleted_at IS NULL);
CREATE INDEX deployments_due ON public.deployments USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE UNIQUE INDEX deployments_number ON public.deployments USING btree (application_id, number);
CREATE INDEX deployments_of_artifact ON public.deployments USING btree (artifact_id);
CREATE INDEX deployments_of_preview ON public.deployments USING btree (preview_id) WHERE (preview_id IS NOT NULL);
CREATE INDEX deployments_of_project ON public.deployments USING btree (project_id);
CREATE INDEX deployments_of_upload ON public.deployments USING btree (((source ->> 'source_upload_id'::text))) WHERE ((source ->> 'source_upload_id'::text) IS NOT NULL);
CREATE INDEX deployments_promoted_from ON public.deployments USING btree (((promoted_from ->> 'deployment_id'::text))) WHERE (promoted_from IS NOT NULL);

create table dns_last_serials (
  name text collate "C" not null,
  serial integer not null,
  ended_at timestamp(3) with time zone not null,
  constraint dns_last_serials_pkey PRIMARY KEY (name)
);

create table dns_records (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  dns_zone_id text collate "C" not null,
  name text collate "C" not null,
  type text collate "C" not null,
  value text not null,
  ttl integer,
  priority integer,
  weight integer,
  port integer,
  flags integer,
  tag text,
  comment text,
  is_protected boolean not null default false,
  managed_by jsonb,
  constraint dns_records_dns_zone FOREIGN KEY (dns_zone_id) REFERENCES dns_zones(id) ON DELETE CASCADE,
  constraint dns_records_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX dns_records__already_exists ON public.dns_records USING btree (dns_zone_id, name, type, md5(value), COALESCE(priority, '-1'::integer));
CREATE INDEX dns_records_by_id ON public.dns_records USING btree (dns_zone_id, id);
CREATE INDEX dns_records_by_name ON public.dns_records USING btree (dns_zone_id, name, id);
CREATE INDEX dns_records_by_type ON public.dns_records USING btree (dns_zone_id, type, id);
CREATE INDEX dns_records_of_owner ON public.dns_records USING btree (((managed_by ->> 'id'::text)), ((managed_by ->> 'type'::text))) WHERE (managed_by IS NOT NULL);

create table dns_zones (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  name text collate "C" not null,
  default_ttl integer not null,
  soa jsonb not null,
  label text not null,
  name_servers text[] not null,
  serial integer not null default 1,
  record_count integer not null default 0,
  status text not null default 'pending'::text,
  status_reason text,
  observed_name_servers text[],
  last_checked_at timestamp(3) with time zone,
  elsewhere_since timestamp(3) with time zone,
  dnssec_status text not null default 'disabled'::text,
  dnssec_enabled_at timestamp(3) with time zone,
  dnssec_checked_at timestamp(3) with time zone,
  signing_keys text,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  deletion_protection boolean not null default false,
  retired_signing_keys text,
  is_served boolean,
  notified_serial bigint,
  constraint dns_zones_dnssec_status CHECK ((dnssec_status = ANY (ARRAY['disabled'::text, 'pending'::text, 'active'::text]))),
  constraint dns_zones_pkey PRIMARY KEY (id),
  constraint dns_zones_status CHECK ((status = ANY (ARRAY['pending'::text, 'active'::text, 'moved'::text])))
);
CREATE UNIQUE INDEX dns_zones__domain_taken ON public.dns_zones USING btree (name) WHERE ((deleted_at IS NULL) AND (status = 'active'::text));
CREATE UNIQUE INDEX dns_zones__domain_taken__name ON public.dns_zones USING btree (project_id, name) WHERE (deleted_at IS NULL);
CREATE INDEX dns_zones_backwards ON public.dns_zones USING btree (reverse(lower(name))) WHERE (deleted_at IS NULL);
CREATE INDEX dns_zones_by_id ON public.dns_zones USING btree (project_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX dns_zones_by_name ON public.dns_zones USING btree (project_id, name, id) WHERE (deleted_at IS NULL);
CREATE INDEX dns_zones_by_status ON public.dns_zones USING btree (project_id, status, id) WHERE (deleted_at IS NULL);
CREATE INDEX dns_zones_due ON public.dns_zones USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX dns_zones_of_name ON public.dns_zones USING btree (lower(name)) WHERE (deleted_at IS NULL);

create table domains (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  application_id text collate "C",
  hostname text collate "C" not null,
  type text not null,
  status text not null default 'pending'::text,
  status_reason text,
  findings jsonb,
  certificate jsonb not null,
  verification_token text not null,
  last_checked_at timestamp(3) with time zone,
  verified_at timestamp(3) with time zone,
  missing_since timestamp(3) with time zone,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  dns text not null default 'automatic'::text,
  cdn_zone_id text collate "C",
  target_host text,
  constraint domains_application FOREIGN KEY (application_id) REFERENCES applications(id),
  constraint domains_cdn_zone FOREIGN KEY (cdn_zone_id) REFERENCES cdn_zones(id) ON DELETE CASCADE,
  constraint domains_dns CHECK ((dns = ANY (ARRAY['automatic'::text, 'manual'::text]))),
  constraint domains_parent CHECK ((num_nonnulls(application_id, cdn_zone_id) = 1)),
  constraint domains_pkey PRIMARY KEY (id),
  constraint domains_type CHECK ((type = ANY (ARRAY['apex'::text, 'subdomain'::text, 'wildcard'::text])))
);
CREATE UNIQUE INDEX domains__domain_taken ON public.domains USING btree (hostname) WHERE (status = 'active'::text);
CREATE UNIQUE INDEX domains__domain_taken__hostname ON public.domains USING btree (project_id, hostname);
CREATE INDEX domains_by_hostname ON public.domains USING btree (application_id, hostname, id) WHERE (deleted_at IS NULL);
CREATE INDEX domains_by_id ON public.domains USING btree (application_id, id);
CREATE INDEX domains_by_status ON public.domains USING btree (application_id, status, id) WHERE (deleted_at IS NULL);
CREATE INDEX domains_due ON public.domains USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX domains_of_cdn_zone ON public.domains USING btree (cdn_zone_id, id);
CREATE INDEX domains_of_cdn_zone_by_hostname ON public.domains USING btree (cdn_zone_id, hostname, id) WHERE (deleted_at IS NULL);
CREATE INDEX domains_of_cdn_zone_by_status ON public.domains USING btree (cdn_zone_id, status, id) WHERE (deleted_at IS NULL);
CREATE INDEX domains_of_project ON public.domains USING btree (project_id, id) WHERE (deleted_at IS NULL);

create table email_bodies (
  message_id text collate "C" not null,
  content bytea not null,
  constraint email_bodies_message FOREIGN KEY (message_id) REFERENCES email_messages(id) ON DELETE CASCADE,
  constraint email_bodies_pkey PRIMARY KEY (message_id)
);

create table email_days (
  email_relay_zone_id text collate "C" not null,
  day date not null,
  recipients integer not null default 0,
  constraint email_days_pkey PRIMARY KEY (email_relay_zone_id, day)
);

create table email_deliveries (
  message_id text collate "C" not null,
  number integer not null,
  email_relay_zone_id text collate "C",
  recipient text not null,
  destination text collate "C" not null,
  status text not null default 'queued'::text,
  attempts integer not null default 0,
  next_at timestamp(3) with time zone default now(),
  fence bigint not null default 0,
  claimed boolean not null default false,
  expires_at timestamp(3) with time zone not null,
  last_response text,
  ended_at timestamp(3) with time zone,
  opened_at timestamp(3) with time zone,
  clicked_at timestamp(3) with time zone,
  complained_at timestamp(3) with time zone,
  rejection text,
  constraint email_deliveries_message_id_fkey FOREIGN KEY (message_id) REFERENCES email_messages(id) ON DELETE CASCADE,
  constraint email_deliveries_pkey PRIMARY KEY (message_id, number),
  constraint email_deliveries_rejection CHECK ((rejection = ANY (ARRAY['mailbox'::text, 'unclear'::text, 'other'::text]))),
  constraint email_deliveries_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'delivered'::text, 'bounced'::text, 'suppressed'::text, 'kept'::text])))
);
CREATE INDEX email_deliveries_due ON public.email_deliveries USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX email_deliveries_ended ON public.email_deliveries USING btree (email_relay_zone_id, ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX email_deliveries_refused ON public.email_deliveries USING btree (destination, ended_at) WHERE (rejection IS NOT NULL);
CREATE INDEX email_deliveries_taken ON public.email_deliveries USING btree (destination, ended_at) WHERE (status = 'delivered'::text);
CREATE INDEX email_deliveries_unclear ON public.email_deliveries USING btree (email_relay_zone_id, lower(recipient)) WHERE (rejection = 'unclear'::text);

create table email_domains (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  name text collate "C" not null,
  return_path_subdomain text not null,
  dns text not null default 'automatic'::text,
  open_tracking boolean not null default false,
  click_tracking boolean not null default false,
  dkim_selector text not null,
  dkim_records jsonb not null,
  dkim_keys text not null,
  status text not null default 'pending'::text,
  status_reason text,
  findings jsonb,
  last_checked_at timestamp(3) with time zone,
  verified_at timestamp(3) with time zone,
  pending_since timestamp(3) with time zone not null,
  missing_since timestamp(3) with time zone,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  deletion_protection boolean not null default false,
  constraint email_domains_pkey PRIMARY KEY (id),
  constraint email_domains_status CHECK ((status = ANY (ARRAY['pending'::text, 'verified'::text, 'failed'::text])))
);
CREATE UNIQUE INDEX email_domains__domain_taken ON public.email_domains USING btree (name) WHERE ((deleted_at IS NULL) AND (status = 'verified'::text));
CREATE UNIQUE INDEX email_domains__domain_taken__name ON public.email_domains USING btree (project_id, name) WHERE (deleted_at IS NULL);
CREATE INDEX email_domains_by_id ON public.email_domains USING btree (project_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX email_domains_by_name ON public.email_domains USING btree (project_id, name, id) WHERE (deleted_at IS NULL);
CREATE INDEX email_domains_by_status ON public.email_domains USING btree (project_id, status, id) WHERE (deleted_at IS NULL);
CREATE INDEX email_domains_due ON public.email_domains USING btree (next_at) WHERE (next_at IS NOT NULL);

create table email_messages (
  id text collate "C" not null,
  project_id text collate "C",
  email_relay_zone_id text collate "C",
  email_domain_id text collate "C",
  sender text not null,
  header_from text not null,
  message_id text not null,
  subject text not null default ''::text,
  body_hash text not null,
  size_bytes bigint not null,
  file text,
  body_offset integer not null,
  accepted_at timestamp(3) with time zone not null default now(),
  finished_at timestamp(3) with time zone,
  constraint email_messages_pkey PRIMARY KEY (id)
);
CREATE INDEX email_messages_finished ON public.email_messages USING btree (finished_at) WHERE (finished_at IS NOT NULL);

create table email_outbox (
  id text collate "C" not null,
  recipients text[] not null,
  sealed text not null,
  created_at timestamp(3) with time zone not null default now(),
  constraint email_outbox_pkey PRIMARY KEY (id)
);

create table email_relay_zones (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  name text collate "C" not null,
  email_domain_ids text[] not null,
  allowed_sources text[] not null default '{}'::text[],
  daily_limit integer,
  enabled boolean not null default true,
  password_hash text not null,
  status text not null default 'active'::text,
  status_reason text,
  suspended_at timestamp(3) with time zone,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  deletion_protection boolean not null default false,
  constraint email_relay_zones_pkey PRIMARY KEY (id),
  constraint email_relay_zones_status CHECK ((status = ANY (ARRAY['active'::text, 'disabled'::text, 'suspended'::text])))
);
CREATE UNIQUE INDEX email_relay_zones__name_taken__name ON public.email_relay_zones USING btree (project_id, name) WHERE (deleted_at IS NULL);
CREATE INDEX email_relay_zones_by_domain ON public.email_relay_zones USING gin (email_domain_ids);
CREATE INDEX email_relay_zones_by_id ON public.email_relay_zones USING btree (project_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX email_relay_zones_by_name ON public.email_relay_zones USING btree (project_id, name, id) WHERE (deleted_at IS NULL);
CREATE INDEX email_relay_zones_by_status ON public.email_relay_zones USING btree (project_id, status, id) WHERE (deleted_at IS NULL);
CREATE INDEX email_relay_zones_due ON public.email_relay_zones USING btree (next_at) WHERE (next_at IS NOT NULL);

create table email_suppressions (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  email_relay_zone_id text collate "C" not null,
  email text collate "C" not null,
  reason text not null,
  detail text,
  constraint email_suppressions_email_relay_zone FOREIGN KEY (email_relay_zone_id) REFERENCES email_relay_zones(id) ON DELETE CASCADE,
  constraint email_suppressions_pkey PRIMARY KEY (id),
  constraint email_suppressions_reason CHECK ((reason = ANY (ARRAY['bounce'::text, 'complaint'::text, 'manual'::text])))
);
CREATE UNIQUE INDEX email_suppressions__already_exists__email ON public.email_suppressions USING btree (email_relay_zone_id, email);
CREATE INDEX email_suppressions_by_id ON public.email_suppressions USING btree (email_relay_zone_id, id);
CREATE INDEX email_suppressions_by_reason ON public.email_suppressions USING btree (email_relay_zone_id, reason, id);

create table environment_variables (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  application_id text collate "C" not null,
  key text collate "C" not null,
  value text not null,
  value_hash text not null,
  available_at text not null default 'both'::text,
  managed_by text,
  constraint environment_variables_application FOREIGN KEY (application_id) REFERENCES applications(id) ON DELETE CASCADE,
  constraint environment_variables_available_at CHECK ((available_at = ANY (ARRAY['build'::text, 'runtime'::text, 'both'::text]))),
  constraint environment_variables_key UNIQUE (application_id, key),
  constraint environment_variables_pkey PRIMARY KEY (id)
);
CREATE INDEX environment_variables_by_available_at ON public.environment_variables USING btree (application_id, available_at, id);
CREATE INDEX environment_variables_by_id ON public.environment_variables USING btree (application_id, id);

create table git_integrations (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  name text collate "C" not null,
  provider text not null,
  base_url text,
  auth_type text not null,
  account jsonb,
  account_id text,
  sealed_tokens text,
  token_expires_at timestamp(3) with time zone,
  sealed_grant text,
  grant_expires_at timestamp(3) with time zone,
  status text not null,
  status_reason text,
  last_verified_at timestamp(3) with time zone,
  observed_generation bigint not null default '0'::bigint,
  deleted_at timestamp(3) with time zone,
  constraint git_integrations_pkey PRIMARY KEY (id),
  constraint git_integrations_project_id_foreign FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint git_integrations_status CHECK ((status = ANY (ARRAY['pending'::text, 'active'::text, 'error'::text])))
);
CREATE UNIQUE INDEX git_integrations__already_exists ON public.git_integrations USING btree (project_id, provider, COALESCE(base_url, ''::text), account_id) WHERE ((account_id IS NOT NULL) AND (deleted_at IS NULL));
CREATE INDEX git_integrations_by_id ON public.git_integrations USING btree (project_id, id);
CREATE INDEX git_integrations_by_name ON public.git_integrations USING btree (project_id, name, id);
CREATE INDEX git_integrations_by_provider ON public.git_integrations USING btree (project_id, provider, id);
CREATE INDEX git_integrations_by_status ON public.git_integrations USING btree (project_id, status, id);

create table git_repositories (
  id text collate "C" not null,
  project_id text collate "C" not null,
  git_integration_id text collate "C" not null,
  repository_id text not null,
  full_name text not null,
  clone_url text not null,
  default_branch text,
  sealed_hook text not null,
  hook_hash text not null,
  provider_hook_id text,
  hook_reason text,
  checked_at timestamp(3) with time zone,
  failures integer not null default 0,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  constraint git_repositories_git_integration_id_foreign FOREIGN KEY (git_integration_id) REFERENCES git_integrations(id) ON DELETE CASCADE,
  constraint git_repositories_pkey PRIMARY KEY (id)
);
CREATE INDEX git_repositories_due ON public.git_repositories USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE UNIQUE INDEX git_repositories_hook ON public.git_repositories USING btree (hook_hash);
CREATE UNIQUE INDEX git_repositories_of_integration ON public.git_repositories USING btree (git_integration_id, repository_id) WHERE (deleted_at IS NULL);

create table host_directories (
  name text collate "C" not null,
  mark text not null,
  updated_at timestamp(3) with time zone not null default now(),
  constraint host_directories_pkey PRIMARY KEY (name)
);

create table idempotency_records (
  scope text not null,
  fingerprint text not null,
  status integer,
  answer text,
  created_at timestamp(3) with time zone not null default now(),
  constraint idempotency_records_pkey PRIMARY KEY (scope)
);
CREATE INDEX idempotency_records_by_age ON public.idempotency_records USING btree (created_at);

create table incidents (
  id text collate "C" not null,
  project_id text collate "C" not null,
  observer_id text collate "C" not null,
  status text not null,
  cause text not null,
  started_at timestamp(3) with time zone not null,
  resolved_at timestamp(3) with time zone,
  remind_at timestamp(3) with time zone,
  constraint incidents_observer_id_fkey FOREIGN KEY (observer_id) REFERENCES observers(id) ON DELETE CASCADE,
  constraint incidents_pkey PRIMARY KEY (id)
);
CREATE INDEX incidents_by_age ON public.incidents USING btree (started_at) WHERE (status = 'resolved'::text);
CREATE INDEX incidents_by_status ON public.incidents USING btree (observer_id, status, id);
CREATE INDEX incidents_of_observer ON public.incidents USING btree (observer_id, id);
CREATE UNIQUE INDEX incidents_open ON public.incidents USING btree (observer_id) WHERE (status = 'open'::text);
CREATE INDEX incidents_to_remind ON public.incidents USING btree (remind_at) WHERE (remind_at IS NOT NULL);

create table installation_alarms (
  id text collate "C" not null,
  name text collate "C" not null,
  subject text collate "C" not null,
  level integer not null,
  announced_level integer,
  title text not null,
  detail text not null,
  begun_at timestamp(3) with time zone not null default now(),
  announced_at timestamp(3) with time zone,
  clear_since timestamp(3) with time zone,
  ended_at timestamp(3) with time zone,
  constraint installation_alarms_pkey PRIMARY KEY (id)
);
CREATE INDEX installation_alarms_by_age ON public.installation_alarms USING btree (ended_at) WHERE (ended_at IS NOT NULL);
CREATE UNIQUE INDEX installation_alarms_open ON public.installation_alarms USING btree (name, subject) WHERE (ended_at IS NULL);

create table installation_reports (
  machine text not null,
  name text not null,
  facts jsonb not null,
  reported_at timestamp(3) with time zone not null default now(),
  constraint installation_reports_pkey PRIMARY KEY (machine, name)
);

create table instances (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  application_id text collate "C" not null,
  preview_id text collate "C",
  process_id text collate "C" not null,
  process_type text not null,
  deployment_id text collate "C" not null,
  release_id text collate "C" not null,
  status text not null default 'starting'::text,
  status_reason text,
  restart_count integer not null default 0,
  cpu_percent double precision,
  memory_mb integer,
  started_at timestamp(3) with time zone,
  port integer,
  handle jsonb,
  exits jsonb not null default '[]'::jsonb,
  misses integer not null default 0,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  pod_uid text,
  workload_id text collate "C",
  location jsonb,
  constraint instances_application FOREIGN KEY (application_id) REFERENCES applications(id),
  constraint instances_pkey PRIMARY KEY (id),
  constraint instances_preview FOREIGN KEY (preview_id) REFERENCES previews(id),
  constraint instances_project FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint instances_release FOREIGN KEY (release_id) REFERENCES releases(id) ON DELETE CASCADE,
  constraint instances_workload FOREIGN KEY (workload_id) REFERENCES workloads(id) ON DELETE CASCADE
);
CREATE INDEX instances_by_id ON public.instances USING btree (application_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX instances_by_preview ON public.instances USING btree (application_id, preview_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX instances_by_process ON public.instances USING btree (application_id, process_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX instances_by_status ON public.instances USING btree (application_id, status, id) WHERE (deleted_at IS NULL);
CREATE INDEX instances_due ON public.instances USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX instances_of_application ON public.instances USING btree (application_id);
CREATE INDEX instances_of_preview ON public.instances USING btree (preview_id) WHERE (preview_id IS NOT NULL);
CREATE INDEX instances_of_project ON public.instances USING btree (project_id);
CREATE INDEX instances_of_release ON public.instances USING btree (release_id);
CREATE INDEX instances_of_workload ON public.instances USING btree (workload_id) WHERE (workload_id IS NOT NULL);
CREATE UNIQUE INDEX instances_pod ON public.instances USING btree (pod_uid) WHERE (pod_uid IS NOT NULL);
CREATE UNIQUE INDEX instances_port ON public.instances USING btree (port) WHERE ((port IS NOT NULL) AND (pod_uid IS NULL));

create table invitations (
  id text collate "C" not null,
  project_id text collate "C" not null,
  email text not null,
  role text not null,
  hash text not null,
  invited_by text collate "C" not null,
  created_at timestamp(3) with time zone not null default now(),
  expires_at timestamp(3) with time zone not null,
  constraint invitations__already_exists__email UNIQUE (project_id, email),
  constraint invitations_hash UNIQUE (hash),
  constraint invitations_pkey PRIMARY KEY (id),
  constraint invitations_project FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint invitations_role CHECK ((role = ANY (ARRAY['owner'::text, 'developer'::text, 'viewer'::text]))),
  constraint invitations_user FOREIGN KEY (invited_by) REFERENCES users(id) ON DELETE CASCADE
);
CREATE INDEX invitations_by_project ON public.invitations USING btree (project_id, id);

create table knex_migrations (
  id integer not null default nextval('knex_migrations_id_seq'::regclass),
  name character varying(255),
  batch integer,
  migration_time timestamp with time zone,
  constraint knex_migrations_pkey PRIMARY KEY (id)
);

create table knex_migrations_lock (
  index integer not null default nextval('knex_migrations_lock_index_seq'::regclass),
  is_locked integer,
  constraint knex_migrations_lock_pkey PRIMARY KEY (index)
);

create table linked_logins (
  id text collate "C" not null,
  user_id text collate "C" not null,
  provider text not null,
  issuer text not null,
  subject text not null,
  email text,
  created_at timestamp(3) with time zone not null default now(),
  last_used_at timestamp(3) with time zone,
  constraint linked_logins__already_exists UNIQUE (issuer, subject),
  constraint linked_logins__already_exists__provider UNIQUE (user_id, provider),
  constraint linked_logins_pkey PRIMARY KEY (id),
  constraint linked_logins_user FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);

create table log_lines (
  at timestamp(3) with time zone not null,
  seq bigint not null default nextval('log_lines_seq'::regclass),
  tx xid8 not null default pg_current_xact_id(),
  resource_id text collate "C" not null,
  project_id text collate "C" not null,
  application_id text collate "C",
  preview_id text collate "C",
  deployment_id text collate "C",
  instance_id text collate "C",
  process_type text,
  source text not null,
  step text,
  level text not null,
  message text not null
);
CREATE INDEX log_lines_arriving ON ONLY public.log_lines USING btree (resource_id, tx, seq) WHERE (step IS NULL);
CREATE INDEX log_lines_arriving_of_deployment ON ONLY public.log_lines USING btree (deployment_id, tx, seq) WHERE (step IS NOT NULL);
CREATE INDEX log_lines_by_level ON ONLY public.log_lines USING btree (resource_id, level, at, seq) WHERE ((step IS NULL) AND (level <> 'info'::text));
CREATE INDEX log_lines_by_source ON ONLY public.log_lines USING btree (resource_id, source, at, seq) WHERE ((step IS NULL) AND (source <> 'app'::text));
CREATE INDEX log_lines_of_deployment ON ONLY public.log_lines USING btree (deployment_id, at, seq) WHERE (step IS NOT NULL);
CREATE INDEX log_lines_of_resource ON ONLY public.log_lines USING btree (resource_id, at, seq) WHERE (step IS NULL);

create table log_positions (
  unit_id text collate "C" not null,
  position text not null,
  updated_at timestamp(3) with time zone not null default now(),
  constraint log_positions_pkey PRIMARY KEY (unit_id)
);

create table login_attempts (
  hash text collate "C" not null,
  browser_hash text not null,
  payload text not null,
  expires_at timestamp(3) with time zone not null,
  constraint login_attempts_pkey PRIMARY KEY (hash)
);
CREATE INDEX login_attempts_expired ON public.login_attempts USING btree (expires_at);

create table members (
  project_id text collate "C" not null,
  user_id text collate "C" not null,
  role text not null,
  created_at timestamp(3) with time zone not null default now(),
  owner_since timestamp(3) with time zone not null default now(),
  constraint members__already_exists PRIMARY KEY (user_id, project_id),
  constraint members_project FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE,
  constraint members_role CHECK ((role = ANY (ARRAY['owner'::text, 'developer'::text, 'viewer'::text]))),
  constraint members_user FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);
CREATE INDEX members_by_project ON public.members USING btree (project_id, user_id);

create table metric_points (
  at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  resource_id text collate "C" not null,
  part_id text collate "C" not null,
  metric text collate "C" not null,
  samples integer not null,
  total double precision not null,
  buckets bigint[],
  constraint metric_points_pkey PRIMARY KEY (resource_id, metric, part_id, at)
);

create table monitored_regions (
  region text collate "C" not null,
  suspended_at timestamp(3) with time zone,
  reason text,
  lost_at timestamp(3) with time zone,
  late_at timestamp(3) with time zone,
  constraint monitored_regions_pkey PRIMARY KEY (region)
);

create table notifications (
  seq bigint not null,
  message_id text collate "C" not null,
  project_id text collate "C" not null,
  notifier_id text collate "C" not null,
  incident_id text collate "C",
  event text not null,
  subject text collate "C" not null,
  data jsonb not null,
  status text not null default 'pending'::text,
  attempts integer not null default 0,
  fence bigint not null default 0,
  next_at timestamp(3) with time zone not null default now(),
  created_at timestamp(3) with time zone not null default now(),
  sent_at timestamp(3) with time zone,
  duration_ms integer,
  status_code integer,
  error text,
  constraint notifications_once UNIQUE (notifier_id, message_id),
  constraint notifications_pkey PRIMARY KEY (seq)
);
CREATE INDEX notifications_by_age ON public.notifications USING btree (created_at) WHERE (status <> 'pending'::text);
CREATE INDEX notifications_due ON public.notifications USING btree (next_at) WHERE (status = 'pending'::text);
CREATE INDEX notifications_in_order ON public.notifications USING btree (notifier_id, subject, seq) WHERE (status = 'pending'::text);
CREATE INDEX notifications_of_incident ON public.notifications USING btree (incident_id, seq) WHERE (incident_id IS NOT NULL);

create table notifiers (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  name text collate "C" not null,
  type text not null,
  config jsonb not null,
  sealed_config text not null,
  events text[] not null default '{}'::text[],
  enabled boolean not null default true,
  last_delivery jsonb,
  observed_generation bigint not null default '0'::bigint,
  deleted_at timestamp(3) with time zone,
  constraint notifiers_pkey PRIMARY KEY (id),
  constraint notifiers_project_id_foreign FOREIGN KEY (project_id) REFERENCES projects(id)
);
CREATE INDEX notifiers_by_id ON public.notifiers USING btree (project_id, id);
CREATE INDEX notifiers_by_name ON public.notifiers USING btree (project_id, name, id);
CREATE INDEX notifiers_by_type ON public.notifiers USING btree (project_id, type, id);
CREATE INDEX notifiers_of_activity ON public.notifiers USING btree (project_id) WHERE (enabled AND (events <> '{}'::text[]));

create table oauth_records (
  kind text not null,
  hash text collate "C" not null,
  user_code_hash text collate "C",
  grant_id text collate "C",
  scopes text[],
  payload text not null,
  consumed_at timestamp(3) with time zone,
  polled_at timestamp(3) with time zone,
  poll_seconds integer not null default 5,
  created_at timestamp(3) with time zone not null default now(),
  expires_at timestamp(3) with time zone,
  registered_from text,
  constraint oauth_records_grant FOREIGN KEY (grant_id) REFERENCES api_keys(id) ON DELETE CASCADE,
  constraint oauth_records_pkey PRIMARY KEY (kind, hash),
  constraint oauth_records_user_code UNIQUE (user_code_hash)
);
CREATE INDEX oauth_records_expired ON public.oauth_records USING btree (expires_at);
CREATE INDEX oauth_records_of_grant ON public.oauth_records USING btree (grant_id);

create table observer_checks (
  observer_id text collate "C" not null,
  region text collate "C" not null,
  check_at timestamp(3) with time zone not null,
  fence bigint not null default 0,
  failures integer not null default 0,
  passes integer not null default 0,
  result_at timestamp(3) with time zone,
  counted_fence bigint not null default 0,
  probe_id text collate "C",
  claimed_at timestamp(3) with time zone,
  constraint observer_checks_observer_id_fkey FOREIGN KEY (observer_id) REFERENCES observers(id) ON DELETE CASCADE,
  constraint observer_checks_pkey PRIMARY KEY (observer_id, region)
);
CREATE INDEX observer_checks_due ON public.observer_checks USING btree (region, check_at);

create table observer_days (
  observer_id text collate "C" not null,
  day date not null,
  checks integer not null,
  passes integer not null,
  constraint observer_days_observer_id_fkey FOREIGN KEY (observer_id) REFERENCES observers(id) ON DELETE CASCADE,
  constraint observer_days_pkey PRIMARY KEY (observer_id, day)
);

create table observers (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  name text collate "C" not null,
  type text not null,
  enabled boolean not null default true,
  uptime jsonb,
  sealed_headers text,
  metric jsonb,
  resource_id text collate "C",
  interval_seconds integer not null,
  failure_threshold integer not null,
  recovery_threshold integer not null,
  notifier_ids text[] not null default '{}'::text[],
  reminder_minutes integer,
  status text not null,
  last_result jsonb,
  open_incident_id text collate "C",
  data_at timestamp(3) with time zone not null,
  observed_generation bigint not null default '0'::bigint,
  warned_certificate timestamp(3) with time zone,
  certificate_warned_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  constraint observers_of_one_type CHECK (((uptime IS NULL) <> (metric IS NULL))),
  constraint observers_pkey PRIMARY KEY (id),
  constraint observers_project_id_foreign FOREIGN KEY (project_id) REFERENCES projects(id)
);
CREATE INDEX observers_by_id ON public.observers USING btree (project_id, id);
CREATE INDEX observers_by_name ON public.observers USING btree (project_id, name, id);
CREATE INDEX observers_by_notifier ON public.observers USING gin (notifier_ids);
CREATE INDEX observers_by_resource ON public.observers USING btree (resource_id, id) WHERE (resource_id IS NOT NULL);
CREATE INDEX observers_by_status ON public.observers USING btree (project_id, status, id);
CREATE INDEX observers_by_type ON public.observers USING btree (project_id, type, id);

create table previews (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  application_id text collate "C" not null,
  branch text collate "C" not null,
  pull_request_number integer,
  expires_at timestamp(3) with time zone,
  commit_sha text,
  hostname text not null,
  status text not null default 'queued'::text,
  status_reason text,
  current_deployment_id text,
  release_id text collate "C",
  created_by jsonb not null,
  looked_at timestamp(3) with time zone,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  from_fork boolean not null default false,
  copies jsonb,
  database_variables text,
  constraint previews_application FOREIGN KEY (application_id) REFERENCES applications(id),
  constraint previews_hostname UNIQUE (hostname),
  constraint previews_pkey PRIMARY KEY (id),
  constraint previews_project FOREIGN KEY (project_id) REFERENCES projects(id)
);
CREATE UNIQUE INDEX previews__already_exists ON public.previews USING btree (application_id, branch) WHERE (deleted_at IS NULL);
CREATE INDEX previews_by_expiry ON public.previews USING btree (application_id, expires_at, id) WHERE (deleted_at IS NULL);
CREATE INDEX previews_by_expiry_last ON public.previews USING btree (application_id, expires_at DESC NULLS LAST, id DESC) WHERE (deleted_at IS NULL);
CREATE INDEX previews_by_id ON public.previews USING btree (application_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX previews_by_project ON public.previews USING btree (project_id) WHERE (deleted_at IS NULL);
CREATE INDEX previews_by_pull_request ON public.previews USING btree (application_id, pull_request_number, id) WHERE (deleted_at IS NULL);
CREATE INDEX previews_by_status ON public.previews USING btree (application_id, status, id) WHERE (deleted_at IS NULL);
CREATE INDEX previews_due ON public.previews USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX previews_of_application ON public.previews USING btree (application_id);

create table probes (
  id text collate "C" not null,
  region text collate "C" not null,
  key_hash bytea not null,
  created_at timestamp(3) with time zone not null default now(),
  seen_at timestamp(3) with time zone,
  name text not null,
  prefix text not null,
  revoked_at timestamp(3) with time zone,
  checks text[],
  suspended boolean not null default false,
  constraint probes_key_hash_key UNIQUE (key_hash),
  constraint probes_pkey PRIMARY KEY (id)
);
CREATE INDEX probes_by_region ON public.probes USING btree (region);

create table processes (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  application_id text collate "C" not null,
  type text collate "C" not null,
  command text,
  application_type text,
  instances integer not null default 0,
  autoscaling jsonb,
  running_instances integer not null default 0,
  status text not null default 'idle'::text,
  release_id text collate "C",
  autoscaler jsonb,
  observed_generation bigint not null default '0'::bigint,
  constraint processes__already_exists UNIQUE (application_id, type),
  constraint processes_application FOREIGN KEY (application_id) REFERENCES applications(id) ON DELETE CASCADE,
  constraint processes_pkey PRIMARY KEY (id),
  constraint processes_project FOREIGN KEY (project_id) REFERENCES projects(id)
);
CREATE INDEX processes_by_id ON public.processes USING btree (application_id, id);
CREATE INDEX processes_by_status ON public.processes USING btree (application_id, status, id);

create table projects (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  account_id text not null,
  name text collate "C" not null,
  description text,
  default_region text not null,
  deleted_at timestamp(3) with time zone,
  approval_required_for text collate "C" not null default 'none'::text,
  deletion_protection boolean not null default false,
  constraint projects_account FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint projects_approval_required_for CHECK ((approval_required_for = ANY (ARRAY['none'::text, 'keys'::text, 'all'::text]))),
  constraint projects_pkey PRIMARY KEY (id)
);
CREATE INDEX projects_by_account ON public.projects USING btree (account_id);

create table pull_requests (
  id text collate "C" not null,
  project_id text collate "C" not null,
  application_id text collate "C" not null,
  git_repository_id text not null,
  number integer not null,
  events bigint not null default '1'::bigint,
  read_events bigint not null default '0'::bigint,
  state text,
  commit_sha text,
  from_fork boolean not null default false,
  reported text,
  comment_id text,
  comment text,
  failures integer not null default 0,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  constraint pull_requests_application_id_foreign FOREIGN KEY (application_id) REFERENCES applications(id) ON DELETE CASCADE,
  constraint pull_requests_of_application UNIQUE (application_id, number),
  constraint pull_requests_pkey PRIMARY KEY (id)
);
CREATE INDEX pull_requests_due ON public.pull_requests USING btree (next_at) WHERE (next_at IS NOT NULL);

create unlogged table rate_windows (
  bucket text not null,
  window_start bigint not null,
  used bigint not null,
  constraint rate_windows_pkey PRIMARY KEY (bucket)
);

create table recovery_codes (
  user_id text not null,
  hash text not null,
  used_at timestamp(3) with time zone,
  constraint recovery_codes_pkey PRIMARY KEY (user_id, hash),
  constraint recovery_codes_user FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);

create table region_networks (
  region_id text collate "C" not null,
  isolation text not null,
  egress boolean not null,
  reported_at timestamp(3) with time zone not null default now(),
  files text,
  own_ports boolean,
  constraint region_networks_files CHECK ((files = ANY (ARRAY['sandbox'::text, 'user'::text, 'none'::text]))),
  constraint region_networks_isolation CHECK ((isolation = ANY (ARRAY['project'::text, 'none'::text]))),
  constraint region_networks_pkey PRIMARY KEY (region_id)
);

create table registries (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  name text collate "C" not null,
  region text not null,
  status text not null default 'provisioning'::text,
  status_reason text,
  image_count integer not null default 0,
  size_bytes bigint not null default '0'::bigint,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  deletion_protection boolean not null default false,
  constraint registries_pkey PRIMARY KEY (id),
  constraint registries_status CHECK ((status = ANY (ARRAY['provisioning'::text, 'active'::text, 'failed'::text])))
);
CREATE UNIQUE INDEX registries__name_taken__name ON public.registries USING btree (name);
CREATE INDEX registries_by_id ON public.registries USING btree (project_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX registries_by_name ON public.registries USING btree (project_id, name, id) WHERE (deleted_at IS NULL);
CREATE INDEX registries_by_size ON public.registries USING btree (project_id, size_bytes, id) WHERE (deleted_at IS NULL);
CREATE INDEX registries_by_status ON public.registries USING btree (project_id, status, id) WHERE (deleted_at IS NULL);
CREATE INDEX registries_due ON public.registries USING btree (next_at) WHERE (next_at IS NOT NULL);

create table registry_blobs (
  registry_id text collate "C" not null,
  digest text collate "C" not null,
  size_bytes bigint not null,
  touched_at timestamp(3) with time zone not null default now(),
  constraint registry_blobs_pkey PRIMARY KEY (registry_id, digest),
  constraint registry_blobs_registry_id_fkey FOREIGN KEY (registry_id) REFERENCES registries(id) ON DELETE CASCADE
);
CREATE INDEX registry_blobs_by_age ON public.registry_blobs USING btree (registry_id, touched_at);
CREATE INDEX registry_blobs_of_digest ON public.registry_blobs USING btree (digest);

create table registry_manifests (
  registry_id text collate "C" not null,
  repository text collate "C" not null,
  digest text collate "C" not null,
  media_type text not null,
  artifact_type text,
  subject text collate "C",
  annotations jsonb,
  content bytea not null,
  size_bytes bigint not null,
  untagged_at timestamp(3) with time zone default now(),
  constraint registry_manifests_pkey PRIMARY KEY (registry_id, repository, digest),
  constraint registry_manifests_registry_id_fkey FOREIGN KEY (registry_id) REFERENCES registries(id) ON DELETE CASCADE
);
CREATE INDEX registry_manifests_of_subject ON public.registry_manifests USING btree (registry_id, repository, subject) WHERE (subject IS NOT NULL);
CREATE INDEX registry_manifests_untagged ON public.registry_manifests USING btree (registry_id, untagged_at) WHERE (untagged_at IS NOT NULL);

create table registry_references (
  registry_id text collate "C" not null,
  repository text collate "C" not null,
  digest text collate "C" not null,
  target text collate "C" not null,
  constraint registry_references_pkey PRIMARY KEY (registry_id, repository, digest, target),
  constraint registry_references_registry_id_fkey FOREIGN KEY (registry_id) REFERENCES registries(id) ON DELETE CASCADE,
  constraint registry_references_registry_id_repository_digest_fkey FOREIGN KEY (registry_id, repository, digest) REFERENCES registry_manifests(registry_id, repository, digest) ON DELETE CASCADE
);
CREATE INDEX registry_references_of_target ON public.registry_references USING btree (registry_id, target);

create table registry_tags (
  id text collate "C" not null,
  project_id text collate "C" not null,
  registry_id text collate "C" not null,
  repository text collate "C" not null,
  tag text collate "C" not null,
  digest text collate "C" not null,
  media_type text not null,
  size_bytes bigint not null,
  pushed_at timestamp(3) with time zone not null,
  constraint registry_tags_pkey PRIMARY KEY (id),
  constraint registry_tags_registry_id_fkey FOREIGN KEY (registry_id) REFERENCES registries(id) ON DELETE CASCADE,
  constraint registry_tags_registry_id_repository_digest_fkey FOREIGN KEY (registry_id, repository, digest) REFERENCES registry_manifests(registry_id, repository, digest) ON DELETE CASCADE
);
CREATE INDEX registry_tags_by_push ON public.registry_tags USING btree (registry_id, pushed_at, id);
CREATE INDEX registry_tags_by_repository ON public.registry_tags USING btree (registry_id, repository, id);
CREATE INDEX registry_tags_by_tag ON public.registry_tags USING btree (registry_id, tag, pushed_at, id);
CREATE INDEX registry_tags_of_manifest ON public.registry_tags USING btree (registry_id, repository, digest);
CREATE UNIQUE INDEX registry_tags_of_name ON public.registry_tags USING btree (registry_id, repository, tag);

create table registry_uploads (
  id text collate "C" not null,
  registry_id text collate "C" not null,
  repository text collate "C" not null,
  created_at timestamp(3) with time zone not null default now(),
  constraint registry_uploads_pkey PRIMARY KEY (id),
  constraint registry_uploads_registry_id_fkey FOREIGN KEY (registry_id) REFERENCES registries(id) ON DELETE CASCADE
);
CREATE INDEX registry_uploads_of_registry ON public.registry_uploads USING btree (registry_id, created_at);

create table release_notices (
  id smallint not null default 1,
  next_at timestamp(3) with time zone not null default now(),
  release jsonb,
  constraint release_notices_id_check CHECK ((id = 1)),
  constraint release_notices_pkey PRIMARY KEY (id)
);

create table releases (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  application_id text collate "C" not null,
  preview_id text collate "C",
  deployment_id text collate "C" not null,
  settings jsonb not null,
  processes jsonb not null,
  variables text not null,
  image text collate "C",
  databases jsonb not null default '[]'::jsonb,
  constraint releases_application FOREIGN KEY (application_id) REFERENCES applications(id),
  constraint releases_deployment FOREIGN KEY (deployment_id) REFERENCES deployments(id) ON DELETE CASCADE,
  constraint releases_pkey PRIMARY KEY (id),
  constraint releases_preview FOREIGN KEY (preview_id) REFERENCES previews(id),
  constraint releases_project FOREIGN KEY (project_id) REFERENCES projects(id)
);
CREATE INDEX releases_of_application ON public.releases USING btree (application_id);
CREATE INDEX releases_of_deployment ON public.releases USING btree (deployment_id);
CREATE INDEX releases_of_image ON public.releases USING btree (image) WHERE (image IS NOT NULL);
CREATE INDEX releases_of_preview ON public.releases USING btree (preview_id) WHERE (preview_id IS NOT NULL);
CREATE INDEX releases_of_project ON public.releases USING btree (project_id);

create table reported_traffic (
  id bigint not null default nextval('reported_traffic_id_seq'::regclass),
  at timestamp(3) with time zone not null default CURRENT_TIMESTAMP,
  traffic jsonb not null,
  constraint reported_traffic_pkey PRIMARY KEY (id)
);
CREATE INDEX reported_traffic_at ON public.reported_traffic USING btree (at);

create table robot_accounts (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  name text collate "C" not null,
  permissions text[] not null,
  registry_ids text[],
  expires_at timestamp(3) with time zone,
  username text collate "C" not null,
  secret_hash text not null,
  last_used_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  constraint robot_accounts_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX robot_accounts__name_taken__name ON public.robot_accounts USING btree (project_id, name) WHERE (deleted_at IS NULL);
CREATE INDEX robot_accounts_by_end ON public.robot_accounts USING btree (project_id, expires_at, id);
CREATE INDEX robot_accounts_by_id ON public.robot_accounts USING btree (project_id, id);
CREATE INDEX robot_accounts_by_last_use ON public.robot_accounts USING btree (project_id, last_used_at, id);
CREATE INDEX robot_accounts_by_last_use_last ON public.robot_accounts USING btree (project_id, last_used_at DESC NULLS LAST, id DESC);
CREATE UNIQUE INDEX robot_accounts_username ON public.robot_accounts USING btree (username);

create table runs (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  project_id text collate "C" not null,
  application_id text collate "C" not null,
  preview_id text collate "C",
  release_id text collate "C" not null,
  deployment_id text collate "C" not null,
  command text not null,
  process_type text not null,
  env text[] not null default '{}'::text[],
  variables text,
  application_type text not null,
  timeout_seconds integer not null,
  tty boolean not null default false,
  detached boolean not null default true,
  status text not null default 'queued'::text,
  status_reason text,
  exit_code integer,
  signal text,
  trigger_type text not null default 'api'::text,
  trigger_id text collate "C",
  cancel_requested_at timestamp(3) with time zone,
  started_at timestamp(3) with time zone,
  finished_at timestamp(3) with time zone,
  writer text,
  writer_until timestamp(3) with time zone,
  attached_at timestamp(3) with time zone,
  exceeded_limit text,
  instance_id text collate "C",
  constraint runs_application FOREIGN KEY (application_id) REFERENCES applications(id),
  constraint runs_pkey PRIMARY KEY (id),
  constraint runs_project FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint runs_status CHECK ((status = ANY (ARRAY['queued'::text, 'starting'::text, 'running'::text, 'succeeded'::text, 'failed'::text, 'canceled'::text, 'timed_out'::text]))),
  constraint runs_trigger CHECK ((trigger_type = ANY (ARRAY['api'::text, 'schedule'::text, 'release'::text])))
);
CREATE INDEX runs_by_id ON public.runs USING btree (application_id, id);
CREATE INDEX runs_by_instance ON public.runs USING btree (application_id, instance_id, id);
CREATE INDEX runs_by_preview ON public.runs USING btree (application_id, preview_id, id);
CREATE INDEX runs_by_process_type ON public.runs USING btree (application_id, process_type, id);
CREATE INDEX runs_by_status ON public.runs USING btree (application_id, status, id);
CREATE INDEX runs_by_trigger ON public.runs USING btree (application_id, trigger_type, id);
CREATE INDEX runs_due ON public.runs USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX runs_finished ON public.runs USING btree (finished_at) WHERE (finished_at IS NOT NULL);
CREATE INDEX runs_of_project ON public.runs USING btree (project_id);
CREATE UNIQUE INDEX runs_of_release ON public.runs USING btree (trigger_id) WHERE (trigger_type = 'release'::text);
CREATE INDEX runs_of_trigger ON public.runs USING btree (trigger_id) WHERE (trigger_id IS NOT NULL);
CREATE INDEX runs_unfinished ON public.runs USING btree (deployment_id) WHERE (status = ANY (ARRAY['queued'::text, 'starting'::text, 'running'::text]));
CREATE INDEX runs_unfinished_of_trigger ON public.runs USING btree (trigger_id) WHERE (status = ANY (ARRAY['queued'::text, 'starting'::text, 'running'::text]));

create table schedule_firings (
  schedule_id text collate "C" not null,
  due_at timestamp(3) with time zone not null,
  fired_at timestamp(3) with time zone not null,
  outcome text not null,
  reason text,
  run_id text collate "C",
  missed_count integer not null,
  constraint schedule_firings_outcome CHECK ((outcome = ANY (ARRAY['started'::text, 'skipped'::text, 'missed'::text, 'failed'::text]))),
  constraint schedule_firings_pkey PRIMARY KEY (schedule_id, due_at),
  constraint schedule_firings_schedule FOREIGN KEY (schedule_id) REFERENCES cron_schedules(id) ON DELETE CASCADE
);
CREATE INDEX schedule_firings_by_age ON public.schedule_firings USING btree (fired_at);

create table schedules (
  id text collate "C" not null,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  constraint schedules_pkey PRIMARY KEY (id)
);
CREATE INDEX schedules_due ON public.schedules USING btree (next_at) WHERE (next_at IS NOT NULL);

create table sessions (
  id text collate "C" not null,
  hash text not null,
  user_id text not null,
  address text not null,
  user_agent text not null,
  created_at timestamp(3) with time zone not null default now(),
  last_seen_at timestamp(3) with time zone not null default now(),
  expires_at timestamp(3) with time zone not null,
  constraint sessions_hash UNIQUE (hash),
  constraint sessions_pkey PRIMARY KEY (id),
  constraint sessions_user FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);
CREATE INDEX sessions_by_expiry ON public.sessions USING btree (expires_at);
CREATE INDEX sessions_by_user ON public.sessions USING btree (user_id);

create table shared_repositories (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  name text collate "C" not null,
  url text not null,
  access text not null,
  git_integration_id text collate "C",
  default_branch text not null,
  deploy_key jsonb,
  sealed_key text,
  host_key text,
  sealed_hook text not null,
  hook_hash text not null,
  status text not null,
  status_reason text,
  last_verified_at timestamp(3) with time zone,
  observed_generation bigint not null default '0'::bigint,
  constraint shared_repositories_git_integration_id_foreign FOREIGN KEY (git_integration_id) REFERENCES git_integrations(id),
  constraint shared_repositories_pkey PRIMARY KEY (id),
  constraint shared_repositories_project_id_foreign FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint shared_repositories_status CHECK ((status = ANY (ARRAY['pending'::text, 'active'::text, 'error'::text])))
);
CREATE UNIQUE INDEX shared_repositories__already_exists__url ON public.shared_repositories USING btree (project_id, url);
CREATE INDEX shared_repositories_by_id ON public.shared_repositories USING btree (project_id, id);
CREATE INDEX shared_repositories_by_name ON public.shared_repositories USING btree (project_id, name, id);
CREATE INDEX shared_repositories_by_status ON public.shared_repositories USING btree (project_id, status, id);
CREATE UNIQUE INDEX shared_repositories_hook ON public.shared_repositories USING btree (hook_hash);
CREATE INDEX shared_repositories_of_integration ON public.shared_repositories USING btree (git_integration_id) WHERE (git_integration_id IS NOT NULL);

create table shared_repository_projects (
  shared_repository_id text collate "C" not null,
  project_id text collate "C" not null,
  created_at timestamp(3) with time zone not null default CURRENT_TIMESTAMP,
  constraint shared_repository_projects__already_exists PRIMARY KEY (shared_repository_id, project_id),
  constraint shared_repository_projects_project_id_foreign FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint shared_repository_projects_shared_repository_id_foreign FOREIGN KEY (shared_repository_id) REFERENCES shared_repositories(id) ON DELETE CASCADE
);
CREATE INDEX shared_repository_projects_by_project ON public.shared_repository_projects USING btree (project_id, shared_repository_id);

create table source_uploads (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  application_id text collate "C" not null,
  status text not null default 'waiting'::text,
  status_reason text,
  sha256 text collate "C",
  size_bytes bigint,
  bytes_max bigint not null,
  expires_at timestamp(3) with time zone not null,
  receiving_until timestamp(3) with time zone,
  last_used_at timestamp(3) with time zone not null default now(),
  constraint source_uploads_application FOREIGN KEY (application_id) REFERENCES applications(id) ON DELETE CASCADE,
  constraint source_uploads_pkey PRIMARY KEY (id),
  constraint source_uploads_project FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint source_uploads_ready CHECK (((status <> 'ready'::text) OR ((sha256 IS NOT NULL) AND (size_bytes IS NOT NULL)))),
  constraint source_uploads_status CHECK ((status = ANY (ARRAY['waiting'::text, 'ready'::text, 'refused'::text])))
);
CREATE INDEX source_uploads_by_id ON public.source_uploads USING btree (application_id, id);
CREATE INDEX source_uploads_by_status ON public.source_uploads USING btree (application_id, status, id);
CREATE INDEX source_uploads_of_project ON public.source_uploads USING btree (project_id);
CREATE INDEX source_uploads_unused ON public.source_uploads USING btree (last_used_at);

create table usage_spans (
  id bigint not null default nextval('usage_spans_id_seq'::regclass),
  project_id text collate "C" not null,
  kind text not null,
  resource_id text collate "C" not null,
  price_id text not null,
  quantity bigint not null,
  started_at timestamp(3) with time zone not null default now(),
  ended_at timestamp(3) with time zone,
  constraint usage_spans_pkey PRIMARY KEY (id),
  constraint usage_spans_quantity CHECK ((quantity > 0))
);
CREATE INDEX usage_spans_by_project ON public.usage_spans USING btree (project_id, started_at);
CREATE UNIQUE INDEX usage_spans_open ON public.usage_spans USING btree (resource_id) WHERE (ended_at IS NULL);

create table users (
  id text collate "C" not null,
  account_id text not null,
  email text not null,
  name text not null,
  password_hash text,
  totp_secret text,
  totp_confirmed_at timestamp(3) with time zone,
  totp_last_step bigint not null default '0'::bigint,
  code_failures integer not null default 0,
  code_retry_at timestamp(3) with time zone,
  created_at timestamp(3) with time zone not null default now(),
  email_confirmed_at timestamp(3) with time zone,
  link_by_email_until timestamp(3) with time zone,
  known_code_failures integer not null default 0,
  known_code_retry_at timestamp(3) with time zone,
  is_operator boolean not null default false,
  constraint users__already_exists__email UNIQUE (email),
  constraint users_account FOREIGN KEY (account_id) REFERENCES accounts(id),
  constraint users_pkey PRIMARY KEY (id)
);

create table volume_backups (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  volume_id text collate "C" not null,
  type text not null,
  note text,
  consistency text,
  size_bytes bigint,
  volume_size_gb integer not null,
  content_bytes bigint,
  passphrase text not null,
  started_at timestamp(3) with time zone,
  finished_at timestamp(3) with time zone,
  expires_at timestamp(3) with time zone,
  status text not null default 'pending'::text,
  status_reason text,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  constraint volume_backups_pkey PRIMARY KEY (id),
  constraint volume_backups_project FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint volume_backups_type CHECK ((type = ANY (ARRAY['scheduled'::text, 'manual'::text]))),
  constraint volume_backups_volume FOREIGN KEY (volume_id) REFERENCES volumes(id)
);
CREATE UNIQUE INDEX volume_backups__resource_busy ON public.volume_backups USING btree (volume_id) WHERE ((status = ANY (ARRAY['pending'::text, 'running'::text])) AND (deleted_at IS NULL));
CREATE INDEX volume_backups_by_expiry ON public.volume_backups USING btree (expires_at) WHERE ((expires_at IS NOT NULL) AND (deleted_at IS NULL));
CREATE INDEX volume_backups_by_id ON public.volume_backups USING btree (volume_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX volume_backups_by_status ON public.volume_backups USING btree (volume_id, status, id) WHERE (deleted_at IS NULL);
CREATE INDEX volume_backups_by_type ON public.volume_backups USING btree (volume_id, type, id) WHERE (deleted_at IS NULL);
CREATE INDEX volume_backups_due ON public.volume_backups USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX volume_backups_of_project ON public.volume_backups USING btree (project_id);
CREATE INDEX volume_backups_of_volume ON public.volume_backups USING btree (volume_id);

create table volumes (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  name text collate "C" not null,
  size_gb integer not null,
  region text not null,
  application_id text collate "C",
  mount_path text,
  status text not null default 'provisioning'::text,
  status_reason text,
  enforcement text,
  used_bytes bigint,
  over_quota boolean not null default false,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  deletion_protection boolean not null default false,
  backup_schedule text,
  backup_retention_days integer not null default 7,
  next_backup_at timestamp(3) with time zone,
  restoring_from jsonb,
  restore_failure text,
  constraint volumes_application FOREIGN KEY (application_id) REFERENCES applications(id),
  constraint volumes_mount CHECK (((application_id IS NULL) = (mount_path IS NULL))),
  constraint volumes_pkey PRIMARY KEY (id),
  constraint volumes_project FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint volumes_size CHECK ((size_gb > 0))
);
CREATE UNIQUE INDEX volumes__mount_path_taken ON public.volumes USING btree (application_id, mount_path) WHERE ((deleted_at IS NULL) AND (application_id IS NOT NULL));
CREATE UNIQUE INDEX volumes__name_taken__name ON public.volumes USING btree (project_id, name) WHERE (deleted_at IS NULL);
CREATE INDEX volumes_backup_due ON public.volumes USING btree (next_backup_at) WHERE ((next_backup_at IS NOT NULL) AND (deleted_at IS NULL));
CREATE INDEX volumes_by_application ON public.volumes USING btree (application_id, id) WHERE (application_id IS NOT NULL);
CREATE INDEX volumes_by_id ON public.volumes USING btree (project_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX volumes_by_name ON public.volumes USING btree (project_id, name, id) WHERE (deleted_at IS NULL);
CREATE INDEX volumes_by_region ON public.volumes USING btree (project_id, region, id) WHERE (deleted_at IS NULL);
CREATE INDEX volumes_by_size ON public.volumes USING btree (project_id, size_gb, id) WHERE (deleted_at IS NULL);
CREATE INDEX volumes_by_status ON public.volumes USING btree (project_id, status, id) WHERE (deleted_at IS NULL);
CREATE INDEX volumes_due ON public.volumes USING btree (next_at) WHERE (next_at IS NOT NULL);

create table workloads (
  id text collate "C" not null,
  version bigint not null default '1'::bigint,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  project_id text collate "C" not null,
  application_id text collate "C" not null,
  deployment_id text collate "C" not null,
  release_id text collate "C" not null,
  preview_id text collate "C",
  process_id text collate "C" not null,
  process_type text not null,
  instances integer not null,
  driver text,
  ref jsonb,
  observed jsonb,
  generation bigint not null default '1'::bigint,
  observed_generation bigint not null default '0'::bigint,
  next_at timestamp(3) with time zone default now(),
  lease_owner text,
  lease_until timestamp(3) with time zone,
  fence bigint not null default '0'::bigint,
  attempts integer not null default 0,
  last_error text,
  deadline_at timestamp(3) with time zone,
  deleted_at timestamp(3) with time zone,
  constraint workloads_application FOREIGN KEY (application_id) REFERENCES applications(id),
  constraint workloads_deployment FOREIGN KEY (deployment_id) REFERENCES deployments(id),
  constraint workloads_pkey PRIMARY KEY (id),
  constraint workloads_preview FOREIGN KEY (preview_id) REFERENCES previews(id),
  constraint workloads_project FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint workloads_release FOREIGN KEY (release_id) REFERENCES releases(id)
);
CREATE INDEX workloads_due ON public.workloads USING btree (next_at) WHERE (next_at IS NOT NULL);
CREATE INDEX workloads_of_application ON public.workloads USING btree (application_id);
CREATE INDEX workloads_of_deployment ON public.workloads USING btree (deployment_id);
CREATE INDEX workloads_of_preview ON public.workloads USING btree (preview_id) WHERE (preview_id IS NOT NULL);
CREATE INDEX workloads_of_project ON public.workloads USING btree (project_id);
CREATE UNIQUE INDEX workloads_release ON public.workloads USING btree (release_id, process_id);

CREATE OR REPLACE FUNCTION public.abort_bucket_upload(of_bucket text, of_upload text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
    declare
      b buckets := hold_bucket(of_bucket);
    begin
      if not exists (select from bucket_uploads where id = of_upload and bucket_id = of_bucket) then
        perform refuse_bucket_write('NoSuchUpload');
      end if;
      perform charge_bucket(b, 0, 0, 0, -coalesce((select sum(size)::bigint from bucket_upload_parts
        where upload_id = of_upload), 0), null);
      perform drop_bucket_upload(of_upload);
    end $function$
;

CREATE OR REPLACE FUNCTION public.add_bucket_version(b buckets, object jsonb, project_limit bigint)
 RETURNS bucket_objects
 LANGUAGE plpgsql
AS $function$
    declare
      latest bucket_objects;
      old bucket_objects;
      made bucket_objects;
      was_object boolean;
      is_marker boolean := coalesce((object->>'is_delete_marker')::boolean, false);
      mode text := object->>'retain_mode';
      until timestamptz := (object->>'retain_until')::timestamptz;
    begin
      if (mode is not null or object->>'legal_hold' is not null) and not b.object_lock then
        perform refuse_bucket_write('NoObjectLock');
      end if;
      if mode is null and b.default_retention is not null and not is_marker then
        mode := b.default_retention->>'mode';
        until := now() + make_interval(years => coalesce((b.default_retention->>'years')::int, 0),
          days => coalesce((b.default_retention->>'days')::int, 0));
      end if;
      select * into latest from bucket_objects where bucket_id = b.id and key = object->>'key' order by id limit 1;
      was_object := latest.id is not null and not latest.is_delete_marker;
      if was_object
        and (object->>'if_none_match')::boolean then perform refuse_bucket_write('PreconditionFailed'); end if;
      if object->>'if_match' is not null then
        if not was_object then perform refuse_bucket_write('NoSuchKey'); end if;
        if object->>'if_match' not in ('*',
          latest.etag) then perform refuse_bucket_write('PreconditionFailed'); end if;
      end if;
      if not b.versioning and latest.id is not null then
        delete from bucket_objects where bucket_id = b.id and key = object->>'key' and version_id = 'null'
          returning * into old;
        if old.id is not null then perform discard_bucket_files(old); end if;
      end if;
      if latest.id is not null and latest.id is distinct from old.id then
        update bucket_objects set is_latest = false, noncurrent_at = now() where id = latest.id;
      end if;
      insert into bucket_objects (bucket_id, key, version_id, is_latest, is_delete_marker, size, etag, file_id,
        part_count, upload_id,
          modified_at, metadata, tags, is_public, retain_mode, retain_until, legal_hold)
        values (b.id, object->>'key', case when b.versioning then object->>'version_id' else 'null' end, true,
          is_marker,
          coalesce((object->>'size')::bigint, 0), coalesce(object->>'etag', ''), object->>'file_id',
            (object->>'part_count')::int,
          object->>'upload_id', now(), coalesce(object->'metadata', '{}'), nullif(object->'tags', 'null'),
          coalesce((object->>'is_public')::boolean, false), mode, until, (object->>'legal_hold')::boolean)
        returning * into made;
      perform charge_bucket(b, (not is_marker)::int - was_object::int, made.size - coalesce(old.size, 0),
        case when latest.id is distinct from old.id then coalesce(latest.size, 0) - coalesce(old.size,
          0) else 0 end, 0, project_limit);
      return made;
    end $function$
;

CREATE OR REPLACE FUNCTION public.application_route_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      perform pg_notify('routes', new.id);
      return null;
    end $function$
;

CREATE OR REPLACE FUNCTION public.begin_bucket_usage()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      insert into bucket_usage (bucket_id) values (new.id);
      insert into bucket_totals (project_id) values (new.project_id) on conflict do nothing;
      return null;
    end $function$
;

CREATE OR REPLACE FUNCTION public.cdn_domain_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      update cdn_zones set next_at = now() where id = coalesce(new.cdn_zone_id, old.cdn_zone_id);
      perform pg_notify('due', 'cdn_zones');
      perform pg_notify('cdn_zones', coalesce(new.cdn_zone_id, old.cdn_zone_id));
      return null;
    end $function$
;

CREATE OR REPLACE FUNCTION public.cdn_purge_made()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      perform pg_notify('cdn_purges', new.id);
      return null;
    end $function$
;

CREATE OR REPLACE FUNCTION public.cdn_zone_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      perform pg_notify('cdn_zones', coalesce(new.id, old.id));
      return null;
    end $function$
;

CREATE OR REPLACE FUNCTION public.certificate_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      perform pg_notify('certificates', case tg_op when 'DELETE' then old.id else new.id end);
      return null;
    end $function$
;

CREATE OR REPLACE FUNCTION public.certificate_wanted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      insert into certificates (id, domain_id) values (new.hostname, new.id)
        on conflict (id) do update set domain_id = excluded.domain_id, next_at = now(), attempts = 0;
      perform pg_notify('due', 'certificates');
      return null;
    end $function$
;

CREATE OR REPLACE FUNCTION public.charge_bucket(b buckets, objects bigint, stored bigint, noncurrent bigint, uploading bigint, project_limit bigint)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
    declare
      more bigint := stored + uploading;
    begin
      update bucket_usage set object_count = object_count + objects, size_bytes = size_bytes + stored,
          noncurrent_size_bytes = noncurrent_size_bytes + noncurrent, upload_bytes = upload_bytes + uploading
        where bucket_id = b.id
          and (more <= 0 or b.quota_gb is null
            or size_bytes + upload_bytes + more <= b.quota_gb * 1073741824::bigint);
      if not found then perform refuse_bucket_write('QuotaExceeded'); end if;
      if more <> 0 then
        update bucket_totals set size_bytes = size_bytes + more where project_id = b.project_id
          and (more < 0 or project_limit is null or size_bytes + more <= project_limit);
        if not found then perform refuse_bucket_write('QuotaExceeded'); end if;
      end if;
    end $function$
;

CREATE OR REPLACE FUNCTION public.complete_bucket_upload(of_bucket text, of_upload text, file_ids text[], object jsonb, project_limit bigint)
 RETURNS bucket_objects
 LANGUAGE plpgsql
AS $function$
    declare
      b buckets := hold_bucket(of_bucket);
      made bucket_objects;
    begin
      if not exists (select from bucket_uploads where id = of_upload and bucket_id = of_bucket) then
        perform refuse_bucket_write('NoSuchUpload');
      end if;
      if (select count(*) from bucket_upload_parts where upload_id = of_upload
        and file_id = any(file_ids)) <> cardinality(file_ids) then
        perform refuse_bucket_write('InvalidPart');
      end if;
      perform charge_bucket(b, 0, 0, 0, -(select sum(size)::bigint from bucket_upload_parts
        where upload_id = of_upload), null);
      made := add_bucket_version(b, object, project_limit);
      insert into bucket_object_parts (object_id, number, file_id, size, checksums)
        select made.id, number, file_id, size, checksums from bucket_upload_parts where upload_id = of_upload
          and file_id = any(file_ids);
      delete from bucket_upload_parts where upload_id = of_upload and file_id = any(file_ids);
      perform drop_bucket_upload(of_upload);
      return made;
    end $function$
;

CREATE OR REPLACE FUNCTION public.database_port_free()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      delete from database_ports where owner_id = old.id;
      return null;
    end $function$
;

CREATE OR REPLACE FUNCTION public.delete_bucket_object(of_bucket text, of_key text, of_version text, marker_version text, only_id bigint, bypass boolean, project_limit bigint, OUT refusal text, OUT version_id text, OUT is_delete_marker boolean, OUT deleted boolean)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
    declare
      b buckets := hold_bucket(of_bucket);
      target bucket_objects;
      gone bucket_objects;
      next bucket_objects;
      made bucket_objects;
    begin
      deleted := false;
      is_delete_marker := false;
      if only_id is not null and not exists (select from bucket_objects o where o.id = only_id
        and (o.is_latest or of_version is not null)) then
        return;
      end if;
      if of_version is null and b.versioned_at is not null then
        made := add_bucket_version(b, jsonb_build_object('key', of_key, 'version_id', marker_version,
          'is_delete_marker', true), project_limit);
        version_id := made.version_id;
        is_delete_marker := true;
        deleted := true;
        return;
      end if;
      version_id := of_version;
      select * into target from bucket_objects v where v.bucket_id = of_bucket and v.key = of_key
        and v.version_id = coalesce(of_version, 'null') limit 1;
      if target.id is null then return; end if;
      if is_bucket_object_locked(target, bypass) then
        refusal := 'ObjectLocked';
        return;
      end if;
      delete from bucket_objects o where o.id = target.id returning o.* into gone;
      deleted := true;
      is_delete_marker := gone.is_delete_marker;
      perform discard_bucket_files(gone);
      if gone.is_latest then
        update bucket_objects o set is_latest = true, noncurrent_at = null
          where o.id = (select v.id from bucket_objects v where v.bucket_id = of_bucket
            and v.key = of_key order by v.id limit 1)
          returning o.* into next;
      end if;
      perform charge_bucket(b, coalesce((not next.is_delete_marker)::int, 0) - (gone.is_latest
        and not gone.is_delete_marker)::int, -gone.size,
        case when gone.is_latest then -coalesce(next.size, 0) else -gone.size end, 0, project_limit);
    end $function$
;

CREATE OR REPLACE FUNCTION public.delete_bucket_object_if(of_bucket text, of_key text, of_version text, marker_version text, conditions jsonb, bypass boolean, project_limit bigint, OUT refusal text, OUT version_id text, OUT is_delete_marker boolean, OUT deleted boolean)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
    declare
      target bucket_objects;
    begin
      if conditions is not null then
        perform hold_bucket(of_bucket);
        select o.* into target from bucket_objects o where o.bucket_id = of_bucket and o.key = of_key
          and (of_version is null or o.version_id = of_version) order by o.id limit 1;
        version_id := of_version;
        is_delete_marker := false;
        deleted := false;
        if target.id is null then return; end if;
        if conditions->>'etag' not in ('*', target.etag)
          or (conditions->>'size')::bigint <> target.size
          or (conditions->>'modified_at')::timestamptz <> date_trunc('second', target.modified_at) then
          refusal := 'PreconditionFailed';
          return;
        end if;
      end if;
      select d.refusal, d.version_id, d.is_delete_marker, d.deleted
        into refusal, version_id, is_delete_marker, deleted
        from delete_bucket_object(of_bucket, of_key, of_version, marker_version, null, bypass, project_limit) d;
    end $function$
;

CREATE OR REPLACE FUNCTION public.discard_bucket_files(o bucket_objects)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
    begin
      if o.file_id is not null then
        insert into bucket_garbage (file_id, bucket_id) values (o.file_id, o.bucket_id);
      end if;
    end $function$
;

CREATE OR REPLACE FUNCTION public.discard_part_files()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      insert into bucket_garbage (file_id, bucket_id)
        select file_id, old.bucket_id from bucket_object_parts where object_id = old.id;
      return old;
    end $function$
;

CREATE OR REPLACE FUNCTION public.dns_zone_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      perform pg_notify('dns_zones', coalesce(new.id, old.id));
      return null;
    end $function$
;

CREATE OR REPLACE FUNCTION public.drop_bucket_upload(of_upload text)
 RETURNS void
 LANGUAGE sql
AS $function$
    insert into bucket_garbage (file_id, bucket_id)
      select p.file_id, u.bucket_id from bucket_upload_parts p join bucket_uploads u on u.id = p.upload_id
        where p.upload_id = of_upload;
    delete from bucket_uploads where id = of_upload $function$
;

CREATE OR REPLACE FUNCTION public.drop_observation_days(before date)
 RETURNS SETOF boolean
 LANGUAGE plpgsql
 SET lock_timeout TO '500ms'
AS $function$
    declare
      child text;
    begin
      for child in select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent in ('log_lines'::regclass, 'metric_points'::regclass, 'check_results'::regclass)
          and right(c.relname, 8) < to_char(before, 'YYYYMMDD') order by 1
      loop
        begin
          execute format('drop table %I', child);
          return next true;
        exception when lock_not_available then
          return next false;
        end;
      end loop;
    end $function$
;

CREATE OR REPLACE FUNCTION public.guard_bucket_object_lock()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      if tg_op = 'DELETE' then perform refuse_bucket_write('ObjectLocked'); end if;
      if new.retain_mode is distinct from 'compliance' or new.retain_until is null
        or new.retain_until < old.retain_until or (new.bucket_id, new.key, new.version_id, new.file_id, new.part_count)
          is distinct from (old.bucket_id, old.key, old.version_id, old.file_id, old.part_count) then
        perform refuse_bucket_write('ObjectLocked');
      end if;
      return new;
    end $function$
;

CREATE OR REPLACE FUNCTION public.hold_bucket(of_bucket text)
 RETURNS buckets
 LANGUAGE plpgsql
AS $function$
    declare
      found_bucket buckets;
    begin
      perform 1 from bucket_usage where bucket_id = of_bucket for update;
      select * into found_bucket from buckets where id = of_bucket and deleted_at is null;
      if found_bucket.id is null then perform refuse_bucket_write('NoSuchBucket'); end if;
      return found_bucket;
    end $function$
;

CREATE OR REPLACE FUNCTION public.instance_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      if tg_op = 'DELETE' then
        perform wake_stack(old.application_id, old.preview_id, old.deployment_id);
      else
        perform wake_stack(new.application_id, new.preview_id, new.deployment_id);
      end if;
      return null;
    end $function$
;

CREATE OR REPLACE FUNCTION public.is_bucket_object_locked(o bucket_objects, bypass boolean)
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$
    select coalesce(o.legal_hold, false) or coalesce(o.retain_until > now()
      and not (o.retain_mode = 'governance' and bypass), false) $function$
;

CREATE OR REPLACE FUNCTION public.list_bucket_groups(of_bucket text, prefix text, delimiter text, at_key text, after_key text, after_id bigint, end_key text, at_most integer)
 RETURNS TABLE(common_prefix text, object bucket_objects)
 LANGUAGE plpgsql
 STABLE
AS $function$
    declare
      at text := at_key;
      found_count integer := 0;
      cut integer;
      is_cut boolean;
    begin
      while found_count < at_most loop
        is_cut := false;
        for object in select o.* from bucket_objects o where o.bucket_id = of_bucket and o.is_latest and not o.is_delete_marker and o.key > after_key
            and o.key >= at and o.key < end_key order by o.key limit at_most - found_count loop
          cut := strpos(substr(object.key, char_length(prefix) + 1), delimiter);
          found_count := found_count + 1;
          if cut > 0 then
            common_prefix := left(object.key, char_length(prefix) + cut + char_length(delimiter) - 1);
            at := text_after(common_prefix);
            object := null;
            is_cut := true;
          end if;
          return next;
          exit when is_cut;
        end loop;
        exit when not is_cut;
        common_prefix := null;
      end loop;
    end $function$
;

CREATE OR REPLACE FUNCTION public.list_bucket_version_groups(of_bucket text, prefix text, delimiter text, at_key text, after_key text, after_id bigint, end_key text, at_most integer)
 RETURNS TABLE(common_prefix text, object bucket_objects)
 LANGUAGE plpgsql
 STABLE
AS $function$
    declare
      at text := at_key;
      found_count integer := 0;
      cut integer;
      is_cut boolean;
    begin
      while found_count < at_most loop
        is_cut := false;
        for object in select o.* from bucket_objects o where o.bucket_id = of_bucket and (o.key, o.id) > (after_key, after_id)
            and o.key >= at and o.key < end_key order by o.key, o.id limit at_most - found_count loop
          cut := strpos(substr(object.key, char_length(prefix) + 1), delimiter);
          found_count := found_count + 1;
          if cut > 0 then
            common_prefix := left(object.key, char_length(prefix) + cut + char_length(delimiter) - 1);
            at := text_after(common_prefix);
            object := null;
            is_cut := true;
          end if;
          return next;
          exit when is_cut;
        end loop;
        exit when not is_cut;
        common_prefix := null;
      end loop;
    end $function$
;

CREATE OR REPLACE FUNCTION public.make_observation_day(day date)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
    declare
      parent text;
      child text;
    begin
      foreach parent in array array['log_lines', 'metric_points', 'check_results'] loop
        child := parent || '_' || to_char(day, 'YYYYMMDD');
        continue when to_regclass(child) is not null;
        perform pg_advisory_xact_lock(7270014);
        continue when exists (select from pg_class where relname = child and relnamespace = 'public'::regnamespace);
        execute format('create table %I (like %I including defaults including constraints)', child, parent);
        execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, child,
          day || 'T00:00:00Z', (day + 1) || 'T00:00:00Z');
      end loop;
    end $function$
;

CREATE OR REPLACE FUNCTION public.note_run_of_schedule()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    declare
      shown jsonb := jsonb_build_object('id', new.id, 'status', new.status, 'finished_at',
        to_char(new.finished_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'));
    begin
      if tg_op = 'INSERT' then
        update cron_schedules set last_run = shown, observed_generation = observed_generation + 1
          where id = new.trigger_id;
      elsif (old.status, old.finished_at) is distinct from (new.status, new.finished_at) then
        update cron_schedules set last_run = case when last_run ->> 'id' = new.id then shown else last_run end,
          failures_in_a_row = case
            when old.status = new.status then failures_in_a_row
            when new.status = 'succeeded' then 0
            when new.status in ('failed', 'timed_out') then failures_in_a_row + 1
            else failures_in_a_row end,
          observed_generation = observed_generation + 1
          where id = new.trigger_id;
      end if;
      return null;
    end $function$
;

CREATE OR REPLACE FUNCTION public.notify_of_activity()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      insert into notifications (message_id, project_id, notifier_id, event, subject, data)
      select new.id, new.project_id, n.id, 'activity', new.resource_id, jsonb_build_object(
        'id', new.id, 'project_id', new.project_id, 'action', new.action, 'outcome', new.outcome, 'actor', new.actor,
        'key_id', new.key_id,
        'resource', jsonb_build_object('type', new.resource_type, 'id', new.resource_id, 'name', new.resource_name),
        'changed_fields', to_jsonb(new.changed_fields), 'request_id', new.request_id,
        'created_at', to_char(new.created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
      from notifiers n where n.project_id = new.project_id and n.enabled and n.events <> '{}'
        and exists (select from unnest(n.events) as e (pattern)
          where new.action like replace(replace(e.pattern, '_', '\_'), '*', '%'));
      return null;
    end $function$
;

CREATE OR REPLACE FUNCTION public.pull_request_of_preview()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      update pull_requests set generation = generation + 1, next_at = now()
        where application_id = new.application_id and number = new.pull_request_number;
      return null;
    end $function$
;

CREATE OR REPLACE FUNCTION public.put_bucket_object(of_bucket text, object jsonb, project_limit bigint)
 RETURNS bucket_objects
 LANGUAGE sql
AS $function$ select * from add_bucket_version(hold_bucket(of_bucket), object, project_limit) $function$
;

CREATE OR REPLACE FUNCTION public.put_bucket_objects(of_bucket text, objects jsonb, project_limit bigint)
 RETURNS TABLE(refusal text, object bucket_objects)
 LANGUAGE plpgsql
AS $function$
    declare
      b buckets := hold_bucket(of_bucket);
      given jsonb;
    begin
      for given in select value from jsonb_array_elements(objects) with ordinality as list (value, n) order by n loop
        begin
          refusal := null;
          object := add_bucket_version(b, given, project_limit);
        exception when sqlstate 'PS300' then
          refusal := sqlerrm;
          object := null;
        end;
        return next;
      end loop;
    end $function$
;

CREATE OR REPLACE FUNCTION public.put_bucket_part(of_bucket text, of_upload text, part jsonb, project_limit bigint)
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
AS $function$
    declare
      b buckets := hold_bucket(of_bucket);
      old bucket_upload_parts;
      at timestamptz(3) := now();
    begin
      if not exists (select from bucket_uploads where id = of_upload and bucket_id = of_bucket
        and key = part->>'key') then
        perform refuse_bucket_write('NoSuchUpload');
      end if;
      delete from bucket_upload_parts where upload_id = of_upload and number = (part->>'number')::int
        returning * into old;
      if old.file_id is not null then
        insert into bucket_garbage (file_id, bucket_id) values (old.file_id, of_bucket);
      end if;
      insert into bucket_upload_parts (upload_id, number, file_id, size, etag, checksums, modified_at)
        values (of_upload, (part->>'number')::int, part->>'file_id', (part->>'size')::bigint, part->>'etag',
          part->'checksums', at);
      perform charge_bucket(b, 0, 0, 0, (part->>'size')::bigint - coalesce(old.size, 0), project_limit);
      return at;
    end $function$
;

CREATE OR REPLACE FUNCTION public.refuse_bucket_write(reason text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
    begin
      raise exception using errcode = 'PS300', message = reason;
    end $function$
;

CREATE OR REPLACE FUNCTION public.route_changed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      perform pg_notify('routes', case tg_op when 'DELETE' then old.application_id else new.application_id end);
      if tg_op = 'UPDATE' and old.application_id <> new.application_id
        then perform pg_notify('routes', old.application_id); end if;
      return null;
    end $function$
;

CREATE OR REPLACE FUNCTION public.set_bucket_object_hold(of_bucket text, of_object bigint, hold boolean)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
    declare
      b buckets := hold_bucket(of_bucket);
    begin
      if not b.object_lock then perform refuse_bucket_write('NoObjectLock'); end if;
      update bucket_objects set legal_hold = hold where id = of_object and bucket_id = of_bucket;
      if not found then perform refuse_bucket_write('NoSuchVersion'); end if;
    end $function$
;

CREATE OR REPLACE FUNCTION public.set_bucket_object_retention(of_bucket text, of_object bigint, mode text, until timestamp with time zone, bypass boolean)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
    declare
      b buckets := hold_bucket(of_bucket);
      o bucket_objects;
    begin
      select * into o from bucket_objects where id = of_object and bucket_id = of_bucket;
      if o.id is null then perform refuse_bucket_write('NoSuchVersion'); end if;
      if not b.object_lock then perform refuse_bucket_write('NoObjectLock'); end if;
      if until <= now() then perform refuse_bucket_write('RetainUntilPast'); end if;
      if o.retain_until > now() and not (o.retain_mode = 'governance' and bypass)
        and (mode is distinct from o.retain_mode or until < o.retain_until) then
        perform refuse_bucket_write('ObjectLocked');
      end if;
      update bucket_objects set retain_mode = mode, retain_until = until where id = o.id;
    end $function$
;

CREATE OR REPLACE FUNCTION public.text_after(given text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$
    select case ascii(right(given, 1)) when 1114111 then given || repeat(chr(1114111), 256)
      when 55295 then left(given, -1) || chr(57344) else left(given, -1) || chr(ascii(right(given, 1)) + 1) end $function$
;

CREATE OR REPLACE FUNCTION public.wake_deployment_of_run()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      -- It looks again within a second in any case: no need to make its step void.
      update deployments set next_at = now() where id = new.trigger_id;
      if found then perform pg_notify('due', 'deployments'); end if;
      return null;
    end $function$
;

CREATE OR REPLACE FUNCTION public.wake_stack(application text, preview text, deployment text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
    begin
      if preview is null then
        update applications set next_at = now(), generation = generation + 1 where id = application;
        perform pg_notify('due', 'applications');
      else
        update previews set next_at = now(), generation = generation + 1 where id = preview;
        perform pg_notify('due', 'previews');
      end if;
      -- It looks again within a second in any case: no need to make its step void.
      update deployments set next_at = now() where id = deployment and status = 'deploying';
      if found then perform pg_notify('due', 'deployments'); end if;
    end $function$
;

CREATE TRIGGER activity_notifies AFTER INSERT ON public.activity FOR EACH ROW WHEN ((new.project_id IS NOT NULL)) EXECUTE FUNCTION notify_of_activity();

CREATE TRIGGER applications_route AFTER UPDATE OF status, current_deployment_id, settings, deleted_at ON public.applications FOR EACH ROW EXECUTE FUNCTION application_route_changed();

CREATE TRIGGER bucket_objects_keep_compliance BEFORE UPDATE OF retain_mode, retain_until, bucket_id, key, version_id, file_id, part_count ON public.bucket_objects FOR EACH ROW WHEN (((old.retain_mode = 'compliance'::text) AND (old.retain_until > now()))) EXECUTE FUNCTION guard_bucket_object_lock();

CREATE TRIGGER bucket_objects_keep_locked BEFORE DELETE ON public.bucket_objects FOR EACH ROW WHEN ((old.legal_hold OR ((old.retain_mode = 'compliance'::text) AND (old.retain_until > now())))) EXECUTE FUNCTION guard_bucket_object_lock();

CREATE TRIGGER buckets_begin_usage AFTER INSERT ON public.buckets FOR EACH ROW EXECUTE FUNCTION begin_bucket_usage();

CREATE TRIGGER cdn_purges_made AFTER INSERT ON public.cdn_purges FOR EACH ROW EXECUTE FUNCTION cdn_purge_made();

CREATE TRIGGER cdn_zones_change AFTER INSERT OR DELETE OR UPDATE OF hostname, origin, enabled, cache, compression, force_https, deleted_at ON public.cdn_zones FOR EACH ROW EXECUTE FUNCTION cdn_zone_changed();

CREATE TRIGGER certificates_changed AFTER DELETE OR UPDATE OF chain ON public.certificates FOR EACH ROW EXECUTE FUNCTION certificate_changed();

CREATE TRIGGER database_endpoints_port AFTER DELETE ON public.database_endpoints FOR EACH ROW EXECUTE FUNCTION database_port_free();

CREATE TRIGGER database_proofs_port AFTER DELETE ON public.database_proofs FOR EACH ROW EXECUTE FUNCTION database_port_free();

CREATE TRIGGER database_replicas_port AFTER DELETE ON public.database_replicas FOR EACH ROW EXECUTE FUNCTION database_port_free();

CREATE TRIGGER databases_port AFTER DELETE ON public.databases FOR EACH ROW EXECUTE FUNCTION database_port_free();

CREATE TRIGGER discard_part_files BEFORE DELETE ON public.bucket_objects FOR EACH ROW WHEN ((old.part_count IS NOT NULL)) EXECUTE FUNCTION discard_part_files();

CREATE TRIGGER dns_zones_change AFTER UPDATE ON public.dns_zones FOR EACH ROW WHEN (((old.is_served OR new.is_served) AND ((((old.is_served IS DISTINCT FROM new.is_served) OR (old.serial IS DISTINCT FROM new.serial)) OR (old.signing_keys IS DISTINCT FROM new.signing_keys)) OR (old.deleted_at IS DISTINCT FROM new.deleted_at)))) EXECUTE FUNCTION dns_zone_changed();

CREATE TRIGGER dns_zones_removal AFTER DELETE ON public.dns_zones FOR EACH ROW WHEN (old.is_served) EXECUTE FUNCTION dns_zone_changed();

CREATE TRIGGER domains_certificate AFTER UPDATE OF status ON public.domains FOR EACH ROW WHEN (((new.status = 'active'::text) AND (old.status <> 'active'::text) AND (new.deleted_at IS NULL))) EXECUTE FUNCTION certificate_wanted();

CREATE TRIGGER domains_of_cdn_zone_change AFTER UPDATE OF status, deleted_at ON public.domains FOR EACH ROW WHEN ((new.cdn_zone_id IS NOT NULL)) EXECUTE FUNCTION cdn_domain_changed();

CREATE TRIGGER domains_of_cdn_zone_delete AFTER DELETE ON public.domains FOR EACH ROW WHEN ((old.cdn_zone_id IS NOT NULL)) EXECUTE FUNCTION cdn_domain_changed();

CREATE TRIGGER domains_route AFTER INSERT OR DELETE OR UPDATE OF status, hostname, application_id, certificate, deleted_at ON public.domains FOR EACH ROW EXECUTE FUNCTION route_changed();

CREATE TRIGGER instances_come_and_go AFTER INSERT OR DELETE ON public.instances FOR EACH ROW EXECUTE FUNCTION instance_changed();

CREATE TRIGGER instances_move AFTER UPDATE ON public.instances FOR EACH ROW WHEN (((old.status IS DISTINCT FROM new.status) OR (old.exits IS DISTINCT FROM new.exits) OR (old.observed IS DISTINCT FROM new.observed))) EXECUTE FUNCTION instance_changed();

CREATE TRIGGER instances_route AFTER INSERT OR DELETE OR UPDATE OF status, port, location, deleted_at ON public.instances FOR EACH ROW EXECUTE FUNCTION route_changed();

CREATE TRIGGER previews_pull_request AFTER INSERT OR UPDATE OF status, deleted_at ON public.previews FOR EACH ROW WHEN ((new.pull_request_number IS NOT NULL)) EXECUTE FUNCTION pull_request_of_preview();

CREATE TRIGGER previews_route AFTER INSERT OR DELETE OR UPDATE OF status, current_deployment_id, deleted_at ON public.previews FOR EACH ROW EXECUTE FUNCTION route_changed();

CREATE TRIGGER runs_note_schedule AFTER INSERT OR UPDATE OF status, finished_at ON public.runs FOR EACH ROW WHEN ((new.trigger_type = 'schedule'::text)) EXECUTE FUNCTION note_run_of_schedule();

CREATE TRIGGER runs_wake_deployment AFTER UPDATE OF status ON public.runs FOR EACH ROW WHEN (((new.trigger_type = 'release'::text) AND (new.status = ANY (ARRAY['succeeded'::text, 'failed'::text, 'canceled'::text, 'timed_out'::text])) AND (old.status IS DISTINCT FROM new.status))) EXECUTE FUNCTION wake_deployment_of_run();

create sequence activity_seq;

create sequence applications_tenant_seq;

create sequence bucket_objects_id_seq;

create sequence certificate_orders_id_seq;

create sequence knex_migrations_id_seq;

create sequence knex_migrations_lock_index_seq;

create sequence log_lines_seq;

create sequence notifications_seq_seq;

create sequence reported_traffic_id_seq;

create sequence usage_spans_id_seq;

create view cdn_domains as  SELECT id,
    version,
    created_at,
    updated_at,
    project_id,
    application_id,
    hostname,
    type,
    status,
    status_reason,
    findings,
    certificate,
    verification_token,
    last_checked_at,
    verified_at,
    missing_since,
    driver,
    ref,
    observed,
    generation,
    observed_generation,
    next_at,
    lease_owner,
    lease_until,
    fence,
    attempts,
    last_error,
    deadline_at,
    deleted_at,
    dns,
    cdn_zone_id,
    target_host
   FROM domains
  WHERE (cdn_zone_id IS NOT NULL);;
