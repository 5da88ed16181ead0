// ETags and If-Match over GraphQL: who edits what somebody else has changed meanwhile is told so.
import { service, setUpGraphql } from '../support/contract/graphql_cases';

setUpGraphql();

const GET = 'query ($id: ID!) { getDnsZone(id: $id) { id default_ttl } }';
const UPDATE = `mutation ($id: ID!, $ttl: Int!) {
  updateDnsZone(id: $id, input: { default_ttl: $ttl }) { id default_ttl } }`;

const match = (etag: string): { headers: Record<string, string> } => ({ headers: { 'If-Match': etag } });

async function newZone(name: string): Promise<string> {
  return (await service.call('POST', '/v2/dns_zones', { body: { name } })).body.id;
}

test('a query of one resource answers the ETag of REST; one of several, or of a list, none', async () => {
  const id = await newZone('etag.example.com');
  const rest = (await service.call('GET', `/v2/dns_zones/${id}`)).headers.get('etag');
  expect((await service.graphql(GET, { id })).headers.get('etag')).toBe(rest);
  const two = `query ($id: ID!) { a: getDnsZone(id: $id) { id } b: getDnsZone(id: $id) { id } }`;
  expect((await service.graphql(two, { id })).headers.get('etag')).toBeNull();
  expect((await service.graphql('{ listDnsZones { data { id } } }')).headers.get('etag')).toBeNull();
});

test('a change with the ETag of an earlier version is refused, and changes nothing', async () => {
  const id = await newZone('if-match.example.com');
  const before = (await service.graphql(GET, { id })).headers.get('etag') as string;
  const first = await service.graphql(UPDATE, { id, ttl: 600 }, match(before));
  expect([first.errors, first.data.updateDnsZone.default_ttl]).toEqual([undefined, 600]);
  const second = await service.graphql(UPDATE, { id, ttl: 900 }, match(before));
  expect(second.errors?.[0].extensions).toMatchObject({ code: 'precondition_failed', status: 412 });
  expect((await service.graphql(GET, { id })).data.getDnsZone.default_ttl).toBe(600);
  const third = await service.graphql(UPDATE, { id, ttl: 900 }, match(first.headers.get('etag') as string));
  expect(third.data.updateDnsZone.default_ttl).toBe(900);
});

test('as on REST, If-Match is nothing to queries and to operations that are no change of a resource', async () => {
  const id = await newZone('verbs.example.com');
  expect((await service.graphql(GET, { id }, match('"77-7"'))).data.getDnsZone.id).toBe(id);
  const record = `mutation ($id: ID!) {
    createDnsRecord(id: $id, input: { type: A, name: "www", value: "192.0.2.1" }) { id } }`;
  expect((await service.graphql(record, { id }, match('"77-7"'))).errors).toBeUndefined();
});
