// Copies the records that the current name servers of a domain publish.
import type { Context, FoundRecord } from '../../../core/context';
import { problem } from '../../../core/errors';
import type { DnsType } from '../../../schema/types';
import type { RecordFields } from '../dns_record/rules';
import { DnsZone } from '../dns_zone';
import { fitRecord, merge, type ImportResult, type WantedRecord } from './import';
import type { ZoneFileError } from './zone_file';

export interface Scanned {
  records: FoundRecord[];
}

const APEX_TYPES = ['A', 'AAAA', 'HTTPS', 'MX', 'TXT', 'CAA'];
const HOST_TYPES = ['A', 'AAAA', 'CNAME', 'TXT'];
/** Names that most domains use some of. */
const COMMON_NAMES = [
  ...['www', 'mail', 'smtp', 'imap', 'pop', 'webmail', 'autodiscover', 'autoconfig', 'ftp', 'api', 'app', 'admin'],
  ...['blog', 'shop', 'dev', 'staging', 'test', 'cdn', 'static', 'assets', 'docs', 'status', 'vpn', 'support'],
];
const TEXT_NAMES = [
  '_dmarc',
  'default._domainkey',
  'google._domainkey',
  'selector1._domainkey',
  'selector2._domainkey',
];
const SERVICE_NAMES = ['_sip._tcp', '_sip._tls', '_xmpp-client._tcp', '_xmpp-server._tcp', '_autodiscover._tcp'];

const QUESTIONS = [
  ...APEX_TYPES.map((type) => ({ name: '@', type })),
  ...COMMON_NAMES.flatMap((name) => HOST_TYPES.map((type) => ({ name, type }))),
  ...TEXT_NAMES.flatMap((name) => ['TXT', 'CNAME'].map((type) => ({ name, type }))),
  ...SERVICE_NAMES.map((name) => ({ name, type: 'SRV' })),
  { name: 'www', type: 'HTTPS' },
  ...['_25._tcp', '_25._tcp.mail', '_443._tcp', '_443._tcp.www'].map((name) => ({ name, type: 'TLSA' })),
];

/** Before the transaction: null where no name server answers, or where there is no such zone. */
export async function scanZone(ctx: Context, id: string): Promise<Scanned | null> {
  const zone = await DnsZone.get(ctx, id).catch(() => null);
  const records = zone && (await ctx.probes.zone.records(zone.name, zone.name_servers, QUESTIONS));
  return records && { records };
}

/** @throws provider_error, record_conflict, quota_exceeded */
export async function addScanned(ctx: Context, zone: DnsZone, scanned: Scanned | null): Promise<ImportResult> {
  if (!scanned) throw problem('provider_error', 'No name server of the domain gave an answer. Try again later.');
  const errors: ZoneFileError[] = [];
  const notes: ZoneFileError[] = [];
  const wanted: WantedRecord[] = [];
  for (const found of scanned.records) {
    const given = { ...found, type: found.type as DnsType, tag: found.tag as RecordFields['tag'], comment: null };
    if (found.value === '') {
      errors.push({
        line: 0,
        message: `The ${found.type} record of ${found.name}: the type or value is not supported.`,
      });
      continue;
    }
    const { fields, message, note } = fitRecord(given, found.name, zone);
    if (message) errors.push({ line: 0, message });
    else wanted.push({ line: 0, fields });
    if (note && !message) notes.push({ line: 0, message: note });
  }
  return merge(ctx, zone, wanted, { errors, notes, skipped: 0, isReplacing: false, isDryRun: false });
}
