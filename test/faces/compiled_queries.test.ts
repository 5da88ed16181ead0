// A query that comes again is compiled; whichever way it was run, the answer is the same to the letter.
import { startService, type TestService } from '../support/service';

let service: TestService;
const ids: string[] = [];
beforeAll(async () => {
  service = await startService();
  for (const name of ['one', 'two', 'three'])
    ids.push((await service.call('POST', '/v2/volumes', { body: { name, size_gb: 1 } })).body.id);
});
afterAll(() => service.close());

const QUERIES: [string, string, Record<string, unknown>?][] = [
  [
    'a list with a relation',
    '{ listVolumes(limit: 2) { data { id project_id name size_gb created_at application { id name } } next_cursor } }',
  ],
  [
    'aliases and fragments',
    `query { a: listVolumes { data { ...V } } b: listVolumes(limit: 1) {
      data { ... on Volume { id __typename } ...V } } } fragment V on Volume { name place: region }`,
  ],
  [
    'variables and their defaults',
    'query ($limit: Int = 1, $name: String) { listVolumes(limit: $limit, name: $name) { data { name } } }',
    { name: 'two' },
  ],
  [
    'a variable of a wrong kind',
    'query ($limit: Int!) { listVolumes(limit: $limit) { data { name } } }',
    { limit: 'many' },
  ],
  ['a missing variable', 'query ($limit: Int!) { listVolumes(limit: $limit) { data { name } } }'],
  ['a value out of bounds', '{ listVolumes(limit: 0) { data { name } } }'],
  [
    'one part that fails beside one that does not',
    'query Two {\n  listVolumes { data { name } }\n' +
      '  gone: getVolume(volume_id: "vol_01h455vb4pex5vsknk084sn02q") { name }\n}',
  ],
  [
    'conditions',
    `query ($no: Boolean = false) { listVolumes { data { id @include(if: $no) name ...V @skip(if: $no) } } } fragment
      V on Volume { size_gb }`,
  ],
  ['a question about the schema', '{ __type(name: "Volume") { name fields { name } } listVolumes { data { id } } }'],
  ['one of several operations', 'query A { listVolumes { data { id } } } query B { listVolumes { data { name } } }'],
];

test.each(QUERIES)('%s', async (name, query, variables = {}) => {
  const body = JSON.stringify({ query, variables, ...(query.startsWith('query A') && { operationName: 'B' }) });
  const answers: string[] = [];
  for (let i = 0; i < 4; i++) {
    const response = await fetch(`${service.url}/graphql`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Authorization: `Bearer ${service.key}`,
        'X-Svc-Project': service.project,
      },
      body,
    });
    answers.push(`${response.status} ${(await response.text()).replace(/req_\w+/g, 'req')}`);
  }
  expect([name, new Set(answers)]).toEqual([name, new Set([answers[0]])]);
  expect(answers[0]).toContain(/wrong|missing|bounds|fails/.test(name) ? '"code":"' : '"data":{');
});

test('rows that have changed are read anew', async () => {
  const ask = async (): Promise<string[]> =>
    (await service.graphql('{ listVolumes { data { name } } }')).data.listVolumes.data.map(
      (volume: { name: string }) => volume.name,
    );
  for (let i = 0; i < 3; i++) expect(await ask()).toEqual(['three', 'two', 'one']);
  await service.call('PATCH', `/v2/volumes/${ids[0]}`, { body: { name: 'zero' } });
  expect(await ask()).toEqual(['three', 'two', 'zero']);
});
