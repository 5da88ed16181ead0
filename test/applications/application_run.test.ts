// Start, stop and restart (docs/contract/resources.md §3.1): what a request writes. What becomes of it:
// test/deployments.
import { variablesOfRelease } from '../../models/deployments/release';
import { deployed, type DeployedApplication } from '../support/deployments/deployed';
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;
let serial = 0;

beforeAll(async () => {
  service = await startService({ settings: { QUOTAS: '{"applications": 1000}' } });
});

afterAll(() => service.close());

async function application(status: string): Promise<DeployedApplication> {
  const { body } = await service.call('POST', '/v2/applications', { body: { name: `shop-${(serial += 1)}` } });
  await service.call('POST', `/v2/applications/${body.id}/processes`, {
    body: { type: 'worker', command: 'npm run worker' },
  });
  return deployed(service, body.id, status);
}

const act = (id: string, verb: string, options: Record<string, unknown> = {}): Promise<Answer> =>
  service.call('POST', `/v2/applications/${id}/${verb}`, options);

interface ProcessRow {
  type: string;
  status: string;
  release_id: string;
}

async function processesOf({ id }: { id: string }): Promise<Record<string, ProcessRow>> {
  const rows = await service.sql<ProcessRow>(
    'select type, status, release_id from processes where application_id = $1',
    [id],
  );
  return Object.fromEntries(rows.map((row) => [row.type, row]));
}

const newReleases = ({
  id,
  release,
}: DeployedApplication): Promise<
  {
    id: string;
    deployment_id: string;
    preview_id: string | null;
    settings: object;
    processes: object;
    variables: string;
  }[]
> => service.sql('select * from releases where application_id = $1 and id <> $2', [id, release]);

const ALLOWED: Record<string, string[]> = {
  start: ['stopped'],
  stop: ['running', 'crashed', 'starting', 'restarting'],
  restart: ['running', 'crashed'],
};

describe('the state machine', () => {
  const table: [string, string, number, string][] = [
    ['start', 'stopped', 202, 'starting'],
    ['stop', 'running', 202, 'stopping'],
    ['stop', 'crashed', 202, 'stopping'],
    ['stop', 'starting', 202, 'stopping'],
    ['stop', 'restarting', 202, 'stopping'],
    ['restart', 'running', 202, 'restarting'],
    ['restart', 'crashed', 202, 'restarting'],
    ['start', 'new', 409, 'invalid_state'],
    ['start', 'running', 409, 'invalid_state'],
    ['start', 'crashed', 409, 'invalid_state'],
    ['stop', 'new', 409, 'invalid_state'],
    ['stop', 'stopped', 409, 'invalid_state'],
    ['restart', 'new', 409, 'invalid_state'],
    ['restart', 'stopped', 409, 'invalid_state'],
    ...['start', 'restart'].flatMap((verb) =>
      ['deploying', 'restarting', 'stopping', 'starting'].map((status): [string, string, number, string] => [
        verb,
        status,
        409,
        'resource_busy',
      ]),
    ),
    ['stop', 'deploying', 409, 'resource_busy'],
    ['stop', 'stopping', 409, 'resource_busy'],
  ];

  it.each(table)('%s of a %s application answers %i %s', async (verb, status, code, then) => {
    const { id } = await application(status);
    const answer = await act(id, verb);
    expect([answer.status, code === 202 ? answer.body.status : answer.body.code]).toEqual([code, then]);
    if (code === 409) expect(answer.body.resource_status).toBe(status);
    if (then === 'invalid_state') expect(answer.body.allowed_statuses).toEqual(ALLOWED[verb]);
    expect((await service.call('GET', `/v2/applications/${id}`)).body.status).toBe(code === 202 ? then : status);
  });
});

describe('start', () => {
  it('makes a release of the present deployment with the settings and variables of now', async () => {
    const stopped = await application('stopped');
    await service.call('PUT', `/v2/applications/${stopped.id}/env/GREETING`, { body: { value: 'hello' } });
    await service.call('PUT', `/v2/applications/${stopped.id}/env/TOKEN`, {
      body: { value: 'build only', available_at: 'build' },
    });
    await service.call('PATCH', `/v2/applications/${stopped.id}/settings`, {
      body: { run: { shutdown_grace_seconds: 7 } },
    });
    await service.call('PATCH', `/v2/applications/${stopped.id}/processes/${stopped.processes.worker}`, {
      body: { application_type: 'm-1gb' },
    });
    expect((await act(stopped.id, 'start')).status).toBe(202);
    const [release] = await newReleases(stopped);
    expect(release).toMatchObject({ deployment_id: stopped.deployment, preview_id: null });
    expect(release?.settings).toMatchObject({ run: { shutdown_grace_seconds: 7 }, health_check: { type: 'tcp' } });
    expect(release?.processes).toEqual({
      web: { command: 'node server.js', memory_mb: 512, cpus: 0.5, disk_mb: 2048 },
      worker: { command: 'npm run worker', memory_mb: 1024, cpus: 1, disk_mb: 4096 },
    });
    expect(release?.variables).not.toContain('hello');
    expect(variablesOfRelease(service.platform.secrets, release as { id: string; variables: string })).toEqual({
      GREETING: 'hello',
    });
    expect(await processesOf(stopped)).toMatchObject({
      web: { release_id: release?.id },
      worker: { release_id: release?.id },
    });
  });

  it('starts what is wanted, and leaves idle what is not', async () => {
    const stopped = await application('stopped');
    await service.sql(`update processes set status = 'idle' where application_id = $1`, [stopped.id]);
    await act(stopped.id, 'start');
    expect(await processesOf(stopped)).toMatchObject({ web: { status: 'scaling' }, worker: { status: 'idle' } });
  });
});

describe('stop', () => {
  it('keeps the release, and makes the application due', async () => {
    const running = await application('running');
    await act(running.id, 'stop');
    expect(await newReleases(running)).toEqual([]);
    expect(await processesOf(running)).toMatchObject({
      web: { status: 'scaling', release_id: running.release },
      worker: { status: 'idle' },
    });
    expect(
      await service.sql('select next_at <= now() as due, attempts from applications where id = $1', [running.id]),
    ).toEqual([{ due: true, attempts: 0 }]);
  });
});

describe('restart', () => {
  it('gives all process types a new release', async () => {
    const running = await application('running');
    await act(running.id, 'restart');
    const [release] = await newReleases(running);
    expect(await processesOf(running)).toMatchObject({
      web: { release_id: release?.id, status: 'running' },
      worker: { release_id: release?.id },
    });
  });

  it('gives one process type a new release', async () => {
    const running = await application('running');
    const answer = await act(running.id, 'restart', { body: { process_id: running.processes.worker } });
    expect([answer.status, answer.body.status]).toEqual([202, 'restarting']);
    const [release] = await newReleases(running);
    expect(await processesOf(running)).toMatchObject({
      web: { release_id: running.release },
      worker: { release_id: release?.id },
    });
  });

  it('knows the process types of its own application only', async () => {
    const [running, other] = [await application('running'), await application('running')];
    for (const process_id of [other.processes.web, 'prc_01h455vb4pex5vsknk084sn02q', 'nonsense']) {
      expect((await act(running.id, 'restart', { body: { process_id } })).body).toMatchObject({
        status: 422,
        code: 'reference_not_found',
        field: 'process_id',
      });
    }
    expect((await act(running.id, 'restart', { body: { process_id: null } })).body).toMatchObject({
      code: 'validation_failed',
    });
    expect((await act(running.id, 'restart', { body: { colour: 'red' } })).body).toMatchObject({
      code: 'validation_failed',
    });
    // References come before the state.
    await service.sql(`update applications set status = 'stopped' where id = $1`, [running.id]);
    expect((await act(running.id, 'restart', { body: { process_id: other.processes.web } })).body.code).toBe(
      'reference_not_found',
    );
    expect(await newReleases(running)).toEqual([]);
  });
});

describe('races and repetition', () => {
  it('lets one of several win', async () => {
    const running = await application('running');
    const answers = await Promise.all(['restart', 'stop', 'restart', 'stop'].map((verb) => act(running.id, verb)));
    // A stop may come after a restart, but nothing after a stop.
    expect([
      [202, 409, 409, 409],
      [202, 202, 409, 409],
    ]).toContainEqual(answers.map(({ status }) => status).sort());
    expect((await service.call('GET', `/v2/applications/${running.id}`)).body.status).toBe('stopping');
    for (const { status, body } of answers) if (status === 409) expect(body.code).toBe('resource_busy');
  });

  it('answers a repeated key once more', async () => {
    const running = await application('running');
    const options = { headers: { 'Idempotency-Key': `stop-${running.id}` } };
    const first = await act(running.id, 'stop', options);
    const again = await act(running.id, 'stop', options);
    expect([again.status, again.body, again.headers.get('idempotent-replayed')]).toEqual([202, first.body, 'true']);
  });

  it('belongs to the project, and needs the scope to write', async () => {
    const { id } = await application('running');
    const stranger = await service.newProject({ stranger: true });
    const reader = await service.mintKey({ scopes: ['read', 'deploy'] });
    for (const verb of ['start', 'stop', 'restart']) {
      expect((await act(id, verb, { key: stranger.key, project: stranger.id })).status).toBe(404);
      expect((await act(id, verb, { key: reader })).body.code).toBe('insufficient_scope');
    }
  });
});
