// Questions about DNS zones to the servers of others.
import type * as packet from 'dns-packet';
import type { Config } from '../../core/config';
import type { FoundRecord, Probes } from '../../core/context';
import { limits } from '../../core/limits';
import { absoluteHostOf } from '../../core/protocols/dns_records/presentation';
import {
  formatRdata,
  isRdataType,
  normalRdata,
  InvalidRdata,
  tokenizeValue,
  type RdataType,
} from '../../core/protocols/dns_records/rdata';
import { TYPE_NUMBERS, typeOfWord } from '../../core/protocols/dns_records/types';
import { quoteString, valueOfStrings } from '../../core/protocols/text_strings';
import type { DnsQuestions } from '../../core/protocols/dns';
import { DriverError, driverContext } from '../../core/driver';
import {
  readDelegation,
  readRecords,
  readWholeZone,
  ROOT_SERVERS,
  type Delegation,
  type DelegationOptions,
} from '../../engines/dns';

export function zoneProbes({ dnsRoots, dnsDomain, dnsIps }: Config, questions: DnsQuestions): Probes['zone'] {
  const own = { domain: dnsDomain, addresses: dnsIps };
  const options: DelegationOptions = { roots: dnsRoots.length ? dnsRoots : ROOT_SERVERS, questions, own };
  return {
    delegation: (name) => answered(() => readDelegation(name, options, driverContext(limits.probeTimeoutMs).signal)),
    records: (name, own, wanted) => answered(() => foundRecords(name, own, wanted, options)),
  };
}

async function foundRecords(
  name: string,
  own: readonly string[],
  wanted: readonly { name: string; type: string }[],
  options: DelegationOptions,
): Promise<FoundRecord[]> {
  const { signal } = driverContext(limits.probeTimeoutMs);
  const { name_servers }: Delegation = await readDelegation(name, options, signal);
  const others = name_servers.filter((server) => !own.includes(server));
  if (!others.length) return [];
  const whole = await readWholeZone(name, others, options, signal);
  if (whole) return whole.filter((answer) => !isApexServer(answer, name)).flatMap((answer) => toRecord(answer) ?? []);
  const questions = wanted.map((question) => ({ ...question, type: questionTypeOf(question.type) }));
  const found = (await readRecords(name, others, questions, options, signal)) as packet.Answer[];
  return found.flatMap((answer) => toRecord(answer) ?? []);
}

/** dns-packet knows numbers for all types, and names for some. */
function questionTypeOf(type: string): packet.StringRecordType {
  const number = type === 'HTTPS' || type === 'SVCB' ? TYPE_NUMBERS[type] : null;
  return (number === null ? type : `UNKNOWN_${number}`) as packet.StringRecordType;
}

function isApexServer({ type, name }: packet.Answer, zone: string): boolean {
  return type === 'NS' && name.toLowerCase() === zone;
}

const NONE = { priority: null, weight: null, port: null, flags: null, tag: null };

function toRecord(answer: packet.Answer): FoundRecord | null {
  const name = answer.name.toLowerCase();
  const ttl = 'ttl' in answer && typeof answer.ttl === 'number' ? Math.min(Math.max(answer.ttl, 60), 86_400) : null;
  const record = { ...NONE, name, type: answer.type, ttl };
  switch (answer.type) {
    case 'A':
    case 'AAAA':
    case 'CNAME':
    case 'NS':
    case 'PTR':
      return { ...record, value: answer.data };
    case 'MX':
      return { ...record, value: answer.data.exchange, priority: answer.data.preference ?? 0 };
    case 'TXT':
      return {
        ...record,
        value: valueOfStrings([answer.data].flat().map((part) => Buffer.from(part))),
      };
    case 'SRV': {
      const { target, priority = 0, weight = 0, port } = answer.data;
      return { ...record, value: target, priority, weight, port };
    }
    case 'CAA':
      return { ...record, value: answer.data.value, flags: answer.data.flags ?? 0, tag: answer.data.tag };
    default:
      return toRdataRecord(answer, record);
  }
}

/** Of a signed zone: what its name servers make themselves. */
const MADE_TYPES = new Set(['SOA', 'RRSIG', 'NSEC', 'NSEC3', 'NSEC3PARAM', 'DNSKEY', 'CDS', 'CDNSKEY']);

/** A type that the platform does not have stays, without a value: whoever adds the records says so. */
function toRdataRecord(answer: packet.Answer, record: Omit<FoundRecord, 'value'>): FoundRecord | null {
  // As dns-packet names types that it does not know.
  const type = typeOfWord(answer.type.replace('UNKNOWN_', 'TYPE'));
  if (MADE_TYPES.has(type)) return null;
  if (!isRdataType(type)) return { ...record, type, value: '' };
  try {
    return { ...record, type, value: rdataValueOf(type, answer) };
  } catch (error) {
    if (error instanceof InvalidRdata) return { ...record, type, value: '' };
    throw error;
  }
}

function rdataValueOf(type: RdataType, answer: packet.Answer): string {
  if ('data' in answer && Buffer.isBuffer(answer.data)) return formatRdata(type, answer.data);
  return normalRdata(type, tokenizeValue(textOf(answer)), absoluteHostOf);
}

function textOf(answer: packet.Answer): string {
  switch (answer.type) {
    case 'DS': {
      const { keyTag, algorithm, digestType, digest } = answer.data;
      return [keyTag, algorithm, digestType, digest.toString('hex')].join(' ');
    }
    case 'NAPTR': {
      const { order, preference, flags, services, regexp, replacement } = answer.data;
      const strings = [flags, services, regexp].map((text) => quoteString(Buffer.from(text)));
      return [order, preference, ...strings, replacement || '.'].join(' ');
    }
    case 'SSHFP':
      return [answer.data.algorithm, answer.data.hash, answer.data.fingerprint].join(' ');
    case 'TLSA': {
      const { usage, selector, matchingType, certificate } = answer.data;
      return [usage, selector, matchingType, certificate.toString('hex')].join(' ');
    }
    default:
      return '';
  }
}

/** null where no server has answered. */
async function answered<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof DriverError) return null;
    throw error;
  }
}
