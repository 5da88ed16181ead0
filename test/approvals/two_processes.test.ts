/** @tier heavy @quarter 4 @covers models/approvals */
// Two processes of the API, each in a process of its own: the brake counts for both, and one approval passes one call.
import { newBrowser } from '../support/identity/browser';
import { freePort } from '../support/processes/free_port';
import { endPrograms, startProgram } from '../support/processes/program';
import { startService, type TestService } from '../support/service';

jest.setTimeout(120_000);

let service: TestService;
const doors: string[] = [];
beforeAll(async () => {
  service = await startService({ settings: { RETENTION_OF_DELETED_DAYS: '7' } });
  const { config } = service.platform;
  for (const port of [await freePort(), await freePort()]) {
    const program = startProgram({
      ...{ PORT: String(port), DATABASE_URL: config.databaseUrl as string, PLATFORM_DATA_DIR: service.dataDir },
      ...{
        BASE_URL: service.url,
        WORKER: 'separate',
        RETENTION_OF_DELETED_DAYS: '7',
        DESTROYING_CALLS_PER_MINUTE: '10',
      },
    });
    await program.ready();
    doors.push(`http://127.0.0.1:${port}`);
  }
}, 60_000);
afterAll(async () => {
  await endPrograms();
  await service?.close();
});

async function remove(door: number, id: string, key: string): Promise<string> {
  const headers = { Authorization: `Bearer ${key}`, 'X-Svc-Project': service.project };
  const answer = await fetch(`${doors[door % 2]}/v2/volumes/${id}`, { method: 'DELETE', headers });
  return answer.status === 204 ? 'done' : ((await answer.json()) as { code: string }).code;
}

const counted = (codes: string[], code: string): number => codes.filter((one) => one === code).length;

test('a key that asks both at once is paused after ten calls, once', async () => {
  const key = await service.mintKey();
  const nothing = 'vol_01h455vb4pex5vsknk084sn02q';
  const codes = await Promise.all(Array.from({ length: 30 }, (_, door) => remove(door, nothing, key)));
  expect([counted(codes, 'not_found'), counted(codes, 'key_paused')]).toEqual([10, 20]);
  // Each has heard of it.
  expect([await remove(0, nothing, key), await remove(1, nothing, key)]).toEqual(['key_paused', 'key_paused']);
  const events = await service.sql(`select 1 from activity where action = 'api_key.paused'`);
  expect(events).toHaveLength(1);
});

test('an approval that is used in both at once passes one call', async () => {
  const owner = await newBrowser(service, 'approving@example.com', 'owner');
  await service.sql(`update projects set approval_required_for = 'keys' where id = $1`, [service.project]);
  for (let round = 0; round < 4; round += 1) {
    const key = await service.mintKey({ role: 'developer' });
    const body = { name: `files-${round}`, size_gb: 1 };
    const { id } = (await service.call('POST', '/v2/volumes', { body })).body;
    expect(await remove(0, id, key)).toBe('approval_required');
    const [asked] = await service.sql(`select id from approvals where status = 'pending' order by id desc`);
    await owner.data('mutation ($id: ID!) { approveCall(id: $id) { status } }', { id: asked.id });
    const codes = await Promise.all([0, 1, 0, 1].map((door) => remove(door, id, key)));
    expect([counted(codes, 'done'), codes.length]).toEqual([1, 4]);
    expect(codes.filter((code) => !['done', 'not_found', 'approval_required'].includes(code))).toEqual([]);
    // It is back, and the same call needs another approval.
    const entry = (await service.call('GET', `/v2/projects/${service.project}/bin?resource_id=${id}`)).body.data[0];
    expect((await service.call('POST', `/v2/bin/${entry.id}/restore`)).status).toBe(200);
    expect(await remove(1, id, key)).toBe('approval_required');
  }
});
