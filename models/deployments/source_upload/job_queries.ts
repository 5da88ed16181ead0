// Updates by the process that receives an archive, updates by the host, and the sweep.
import type { Sql } from '../../../core/context';
import { problem } from '../../../core/errors';
import { limits } from '../../../core/limits';
import { named } from '../../../db/statement';
import { PLATFORM, recordProjectEvent } from '../../projects/activity';

/** An upload whose archive is being received. */
export interface ClaimedUpload {
  id: string;
  account_id: string;
  project_id: string;
  application_id: string;
  sha256: string | null;
  size_bytes: number | null;
  bytes_max: number;
}

/** How long a claim lasts without being renewed: as long as an upload is blocked after a crash. */
const CLAIM_SECONDS = 30;
export const RENEW_MS = (CLAIM_SECONDS * 1000) / 3;

const CLAIM = named(`update source_uploads set receiving_until = now() + interval '${CLAIM_SECONDS} seconds'
  where id = $1 and status = 'waiting' and (receiving_until is null or receiving_until < now())
  returning id, project_id, (select account_id from projects p where p.id = source_uploads.project_id),
    application_id, sha256, size_bytes, bytes_max`);
const FIND = named('select status from source_uploads where id = $1');
const RENEW = named(`update source_uploads set receiving_until = now() + interval '${CLAIM_SECONDS} seconds'
  where id = $1 and status = 'waiting'`);
const RELEASE = named(`update source_uploads set receiving_until = null where id = $1 and status = 'waiting'`);
const END = named(`update source_uploads set status = $2, status_reason = $3, sha256 = coalesce($4, sha256),
    size_bytes = coalesce($5, size_bytes), receiving_until = null, last_used_at = now(), updated_at = now(),
    version = version + 1
  where id = $1 and status = 'waiting' returning id`);

/** The upload, for the one request that may send its archive. @throws not_found, invalid_state, resource_busy */
export async function claimUpload(sql: Sql, id: string): Promise<ClaimedUpload> {
  const [claimed] = await sql.query<ClaimedUpload>(CLAIM, [id]);
  if (claimed) return claimed;
  const [found] = await sql.query<{ status: string }>(FIND, [id]);
  if (!found) throw problem('not_found', 'The upload does not exist any more. Create another one.');
  if (found.status === 'waiting')
    throw problem('resource_busy', 'Another request is sending the archive of this upload.', {
      resource_status: 'waiting',
    });
  throw problem('invalid_state', 'The archive of this upload was already sent. Create another upload.', {
    resource_status: found.status,
    allowed_statuses: ['waiting'],
  });
}

export async function renewClaim(sql: Sql, id: string): Promise<void> {
  await sql.query(RENEW, [id]);
}

/** Lets another request send the archive. */
export async function releaseClaim(sql: Sql, id: string): Promise<void> {
  await sql.query(RELEASE, [id]);
}

/** False where the upload is gone, or another request was faster. */
export async function finishUpload(
  sql: Sql,
  upload: ClaimedUpload,
  result: { sha256: string; bytes: number } | { reason: string },
): Promise<boolean> {
  const values =
    'reason' in result ? ['refused', result.reason, null, null] : ['ready', null, result.sha256, result.bytes];
  const ended = await sql.query(END, [upload.id, ...values]);
  if (ended.length === 0) return false;
  await recordProjectEvent(sql, {
    project_id: upload.project_id,
    action: `source_upload.${values[0]}`,
    actor: PLATFORM,
    key_id: null,
    resource: { type: 'source_upload', id: upload.id, name: null },
  });
  return true;
}

const SAVE_MARK = named(`insert into host_directories (name, mark) values ('source_uploads', $1)
  on conflict (name) do update set mark = excluded.mark, updated_at = now() where host_directories.mark <> $1`);

/** The directory or the file store that the host has archives from. */
export async function saveUploadsMark(sql: Sql, mark: string): Promise<void> {
  await sql.query(SAVE_MARK, [mark]);
}

// Kept while a deployment uses it or can be rolled back to: it may be built again.
const SWEEP = named(`delete from source_uploads u where id in (
    select id from source_uploads s where last_used_at < now() - make_interval(hours => $1)
      and (receiving_until is null or receiving_until < now())
      and not exists (select 1 from deployments d where d.source ->> 'source_upload_id' = s.id and d.deleted_at is null
        and (d.artifact_kept or d.status in ('queued', 'building', 'deploying', 'active')))
    order by last_used_at limit $2 for update skip locked) returning id`);

/** Deletes uploads that no deployment has used for a day; their files go with the next look for what has no row. */
export async function sweepSourceUploads(sql: Sql): Promise<{ rows: number; full: boolean }> {
  const batch = 1_000;
  const rows = await sql.query(SWEEP, [limits.sourceUploadKeptHours, batch]);
  return { rows: rows.length, full: rows.length === batch };
}

const GONE = named(`select id from unnest($1::text[]) as owned (id) where not exists (select 1 from source_uploads u
  where u.id = owned.id)`);

/** Returns the ids that have no row. */
export async function withoutUploadRow(sql: Sql, ids: readonly string[]): Promise<string[]> {
  return (await sql.query<{ id: string }>(GONE, [ids])).map(({ id }) => id);
}

const SOURCE_TYPE = named(`select source ->> 'type' as type from applications where id = $1`);

/** Whether the application has a configured source, which a deployment of an upload does not use. */
export async function isLocalChange(sql: Sql, applicationId: string): Promise<boolean> {
  const [row] = await sql.query<{ type: string | null }>(SOURCE_TYPE, [applicationId]);
  return row?.type != null && row.type !== 'upload';
}
