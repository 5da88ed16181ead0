// CDN zones in the bin. Their custom domains are given up, and claimed again by a restore where they are still free.
import type { Context } from '../../../core/context';
import { changeRows, NEW_VERSION, tearDownRows } from '../../../db/loop_rows';
import { named } from '../../../db/statement';
import type { Bin } from '../../base/bin';
import { wantDefaultCertificate } from '../../base/default_certificate';
import type { CdnZone } from '../cdn_zone';
import { servedZones } from './job_queries';

interface GivenUp {
  id: string;
  hostname: string;
}

const DOMAINS = named(`select id, hostname, type, dns, verification_token, target_host, created_at from domains
  where cdn_zone_id = $1 and deleted_at is null order by id`);
const DOMAINS_AGAIN =
  named(`insert into domains (id, project_id, cdn_zone_id, created_at, updated_at, hostname, type, dns, status,
    certificate, verification_token, target_host)
  select d.id, $2, $3, d.created_at, now(), d.hostname, d.type, d.dns, 'pending',
    '{"status": "none", "issuer": null, "expires_at": null, "error": null}', d.verification_token, d.target_host
  from jsonb_to_recordset($1) as d (id text, hostname text, type text, dns text, verification_token text,
    target_host text, created_at timestamptz)
  where not exists (select 1 from domains o where o.hostname = d.hostname and o.status = 'active')
  on conflict do nothing returning id`);

export const cdnZoneBin: Bin<CdnZone> = {
  nameFormat: 'slug',
  async restore(ctx, zone, memo) {
    if (zone.status !== 'provisioning') await zone.update(ctx, { status: 'updating', status_reason: null });
    await wantDefaultCertificate(ctx, zone.hostname, { cdn_zone_id: zone.id });
    const { domains } = memo as { domains: GivenUp[] };
    return [...(await originNotes(ctx, zone)), ...(await claimDomains(ctx, zone, domains))];
  },
};

/** @returns what a restore needs to claim them again */
export async function giveUpDomains(ctx: Context, { id }: CdnZone): Promise<GivenUp[]> {
  const domains = await ctx.sql.query<GivenUp>(DOMAINS, [id]);
  await tearDownRows(ctx.sql, { table: 'domains', where: 'cdn_zone_id = $1', values: [id] });
  return domains;
}

async function originNotes(ctx: Context, { id, origin }: CdnZone): Promise<string[]> {
  const [served] = await servedZones(ctx.sql, [id]);
  const isGone = (origin.application_id && !served?.application_host) || (origin.bucket_id && !served?.bucket);
  return isGone ? ['The origin of the zone was deleted. Restore it too, or set another origin.'] : [];
}

/** With their ids and verification records, so that what stands in the DNS elsewhere proves them again. */
async function claimDomains(ctx: Context, zone: CdnZone, domains: GivenUp[]): Promise<string[]> {
  if (!domains.length) return [];
  const inTearDown = await changeRows(ctx.sql, {
    table: 'domains',
    set: `deleted_at = null, ${NEW_VERSION}`,
    where: 'id = any($1) and cdn_zone_id = $2 and deleted_at is not null',
    values: [domains.map(({ id }) => id), zone.id],
  });
  const values = [JSON.stringify(domains), zone.project_id, zone.id];
  const inserted = await ctx.sql.query<{ id: string }>(DOMAINS_AGAIN, values);
  ctx.sql.due('domains');
  const back = new Set([...inTearDown, ...inserted.map(({ id }) => id)]);
  return domains.map(({ id, hostname }) =>
    back.has(id)
      ? `The domain \`${hostname}\` is checked again, and gets a certificate when its DNS records are there.`
      : `The domain \`${hostname}\` was not restored: it is used elsewhere by now.`,
  );
}
