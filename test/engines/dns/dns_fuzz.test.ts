/** @tier both @quarter 1 @covers tools/scripts/fuzz_dns.ts engines/dns core/protocols/dns_records models/dns */
// Damaged and hostile packets: some always the same ones in every run, a million others in the heavy tier.
// tools/scripts/fuzz_dns.ts says what is looked at. Then damaged values of records, their bytes, and zone files.
import { absoluteHostOf, unknownFormTokens } from '../../../core/protocols/dns_records/presentation';
import {
  encodeRdata,
  formatRdata,
  RDATA_TYPES,
  InvalidRdata,
  tokenizeValue,
  ZONE_FILE,
  type RdataType,
} from '../../../core/protocols/dns_records/rdata';
import { SERVED_TYPES } from '../../../core/protocols/dns_records/types';
import { UnreadableZoneFile } from '../../../core/protocols/dns_records/tokens';
import type { RecordFields } from '../../../models/dns/dns_record/rules';
import type { DnsZone } from '../../../models/dns/dns_zone';
import { fitRecord } from '../../../models/dns/dns_zone/import';
import { parseZoneFile, writeZoneFile, type ParsedZone } from '../../../models/dns/dns_zone/zone_file';
import { TRICKY_ZONE_FILE } from '../../support/dns/zone_files';
import { isHeavyRun } from '../../support/processes/kills';
import { endPrograms, startProgram } from '../../support/processes/program';
import { fuzzSeed, pick, randomFrom, type Random } from '../../support/runner/seeded_random';

const PACKETS = isHeavyRun() ? 1_000_000 : 60_000;
const VALUES = isHeavyRun() ? 500_000 : 10_000;
const FILES = isHeavyRun() ? 10_000 : 300;

jest.setTimeout(600_000);

afterAll(endPrograms);

test('nothing is thrown, responses are well-formed, good queries are answered, and memory does not grow', async () => {
  const fuzz = startProgram({}, { entry: 'tools/scripts/fuzz_dns.ts', words: [String(PACKETS), String(fuzzSeed(1))] });
  expect([await fuzz.ended, fuzz.err()]).toEqual([0, '']);
  expect(fuzz.out()).toContain(`${PACKETS} packets`);
});

const DIGEST = '49FD46E6C4B45C55D4AC69CBD3CD34AC1AFE51DE49FD46E6C4B45C55D4AC69CB';
const GOOD: Record<RdataType, string[]> = {
  DS: [`12345 13 2 ${DIGEST}`],
  HTTPS: ['1 . alpn=h3,h2 ipv4hint=192.0.2.1,192.0.2.2 ech="ZWdnIQ=="', '0 shop.example.net'],
  LOC: ['52 22 23.000 N 4 53 32.000 E -2.00m 1m 10000m 10m'],
  NAPTR: ['100 10 "u" "E2U+sip" "!^(.*)$!sip:\\\\1@example.com!" .', '1 2 s SIP+D2U "" _sip._udp.example.net'],
  SSHFP: [`4 2 ${DIGEST}`],
  SVCB: ['16 foo.example.org alpn="f\\\\\\\\oo\\\\,bar" mandatory=alpn,port port=53 key667="\\210q" dohpath=/q{?dns}'],
  TLSA: [`3 1 1 ${DIGEST}`],
};
const PIECES = [
  '"',
  '\\',
  '\\\\',
  ',',
  '=',
  ' ',
  '(',
  ')',
  ';',
  '.',
  '@',
  '\\255',
  '\\999',
  'key1',
  '\u00e4',
  '\u{1f600}',
  '0',
  '65536',
];

function damagedText(random: Random, text: string): string {
  let damaged = text;
  for (let left = 1 + Math.floor(random() * 3); left > 0; left -= 1) {
    const at = Math.floor(random() * (damaged.length + 1));
    const gone = random() < 0.5 ? Math.floor(random() * 4) : 0;
    damaged = damaged.slice(0, at) + (random() < 0.8 ? pick(random, PIECES) : '') + damaged.slice(at + gone);
  }
  return damaged;
}

/** @returns null for a mistake that has a message */
function orMistake<T>(work: () => T): T | null {
  try {
    return work();
  } catch (error) {
    if (error instanceof InvalidRdata || error instanceof UnreadableZoneFile) return null;
    throw error;
  }
}

test('a damaged value of a record is refused with a message, or has one normal form', () => {
  const random = randomFrom(fuzzSeed(2));
  const encode = (type: RdataType, text: string): Buffer => encodeRdata(type, tokenizeValue(text), absoluteHostOf);
  let taken = 0;
  for (let turn = 0; turn < VALUES; turn += 1) {
    const type = pick(random, RDATA_TYPES);
    const text = damagedText(random, pick(random, GOOD[type]));
    const data = orMistake(() => encode(type, text));
    if (!data) continue;
    taken += 1;
    const normal = formatRdata(type, data);
    const again = [encode(type, normal), encode(type, formatRdata(type, data, ZONE_FILE))];
    if (!again.every((bytes) => bytes.equals(data))) throw new Error(`${type} ${text} is not ${normal}`);
  }
  expect(taken).toBeGreaterThan(VALUES / 20);
});

test('damaged bytes of a record are refused with a message, or come back from their text', () => {
  const random = randomFrom(fuzzSeed(3));
  for (let turn = 0; turn < VALUES; turn += 1) {
    const type = pick(random, RDATA_TYPES);
    const data = Buffer.from(encodeRdata(type, tokenizeValue(pick(random, GOOD[type])), absoluteHostOf));
    for (let left = 1 + Math.floor(random() * 3); left > 0; left -= 1)
      data[Math.floor(random() * data.length)] = Math.floor(random() * 256);
    const cut = random() < 0.3 ? data.subarray(0, Math.floor(random() * data.length)) : data;
    const text = orMistake(() => formatRdata(type, cut));
    // Names in capitals, and precisions that have a shorter form, are the same record.
    const again = text === null ? null : formatRdata(type, encodeRdata(type, tokenizeValue(text), absoluteHostOf));
    if (again !== text) throw new Error(`${type} ${text} is ${again}`);
    const form = `\\# ${cut.length} ${cut.toString('hex')}`;
    orMistake(() => unknownFormTokens(pick(random, SERVED_TYPES), tokenizeValue(form)));
  }
});

/** Those that the zone may have. */
function recordsOf(parsed: ParsedZone | null): RecordFields[] {
  return (parsed?.records ?? []).flatMap(({ record, fqdn }) => {
    const fitted = record && fitRecord(record, fqdn, { name: 'example.com' } as DnsZone);
    return fitted && fitted.message === null ? fitted.fields : [];
  });
}

test('a damaged zone file is unreadable, or its records are read again from what is written of them', () => {
  const random = randomFrom(fuzzSeed(4));
  const more = RDATA_TYPES.flatMap((type) => GOOD[type].map((value, index) => `r${index} ${type} ${value}\n`)).join('');
  const good = `${TRICKY_ZONE_FILE.replaceAll('@ORIGIN@', 'example.com.')}$ORIGIN example.com.\n${more}`;
  for (let turn = 0; turn < FILES; turn += 1) {
    const parsed = orMistake(() => parseZoneFile(damagedText(random, good), 'example.com', 3600));
    const records = recordsOf(parsed);
    const again = parseZoneFile(writeZoneFile('example.com', 3600, records), 'example.com', 3600);
    expect([again.errors, recordsOf(again)]).toEqual([[], records]);
  }
});
