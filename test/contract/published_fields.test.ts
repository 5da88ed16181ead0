// What extensions do to published fields: nothing but add. docs/contract/fields.tsv has all that was there when the
// specified operations were complete.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fieldRows } from '../support/contract/published_fields';
import { core } from '../support/world';

/** Values that extensions added to published enums. Each is a value that an older client does not know. */
const ADDED_VALUES = [
  // Of GET /v2/me and of keys: who uses no authorisation server never sees it.
  'TokenKind.oauth',
  // Of applications that were set so, and of deployments: who uploads no source never sees it.
  'ApplicationSourceType.upload',
  // In place of `template`, which requests may still have.
  'ApplicationSourceType.preset',
  // Of a method that the client chose itself.
  'PresignMethod.DELETE',
  // Of records that the customer makes, takes from a file or has found by a scan.
  ...['DS', 'HTTPS', 'LOC', 'NAPTR', 'SSHFP', 'SVCB', 'TLSA'].map((type) => `DnsType.${type}`),
  // Of notifiers that the customer makes.
  ...['gotify', 'mattermost', 'ntfy', 'teams', 'telegram'].map((type) => `NotifierType.${type}`),
  // Of volumes whose files the customer replaces with those of a backup.
  'VolumeStatus.restoring',
  // Of buckets that a client of S3 has created or deleted: whose access keys may not never sees it.
  'ActorType.access_key',
];

const FILE = path.resolve(__dirname, '../../docs/contract/fields.tsv');
const published = readFileSync(FILE, 'utf8')
  .trim()
  .split('\n')
  .slice(1)
  .map((line) => line.split('\t') as [string, string, string]);
const publishedNames = new Set(published.map(([name]) => name));
const publishedTypes = new Set(published.map(([name]) => name.split('.')[0]));
const rows = fieldRows(core.graphqlSchema);

it('no published field, argument or value is missing or has another type or other rules', () => {
  const now = new Map(rows.map(({ name, type, rules }) => [name, [name, type, rules]]));
  expect(published.length).toBeGreaterThan(1500);
  expect(published.map(([name]) => now.get(name) ?? [name, 'missing'])).toEqual(published);
});

it('what was added to a published input or operation may be left out', () => {
  const parent = (name: string): string => (name.includes('(') ? name.split('(')[0] : name.split('.')[0]) as string;
  const known = (name: string): boolean => publishedNames.has(parent(name)) || publishedTypes.has(parent(name));
  const required = rows.filter(
    ({ name, isInput, isOptional }) => isInput && !isOptional && !publishedNames.has(name) && known(name),
  );
  expect(required.map(({ name }) => name)).toEqual([]);
});

it('values were added to published enums only where that is listed', () => {
  const added = rows.filter(
    ({ name, type }) =>
      type === 'enum' && !publishedNames.has(name) && publishedTypes.has(name.split('.')[0] as string),
  );
  expect(added.map(({ name }) => name).sort()).toEqual([...ADDED_VALUES].sort());
});
