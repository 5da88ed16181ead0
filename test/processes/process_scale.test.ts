// Scaling of process types (docs/contract/resources.md §7): what a request writes. What becomes of it:
// test/deployments.
import { deployed, type DeployedApplication } from '../support/deployments/deployed';
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;

beforeAll(async () => {
  service = await startService({ settings: { QUOTAS: '{"applications": 1000}' } });
});

afterAll(() => service.close());

let serial = 0;

async function newApplication(): Promise<string> {
  return (await service.call('POST', '/v2/applications', { body: { name: `shop-${(serial += 1)}` } })).body.id;
}

const place = (application: string, id = ''): string => `/v2/applications/${application}/processes${id && `/${id}`}`;
const scale = (application: string, id: string, body: unknown): Promise<Answer> =>
  service.call('POST', `${place(application, id)}/scale`, { body });
const dueOf = async (application: string): Promise<number> =>
  (await service.sql<{ generation: number }>('select generation from applications where id = $1', [application]))[0]
    ?.generation as number;

function errorsOf(answer: Answer): [string, string][] {
  expect([answer.status, answer.body.code]).toEqual([422, 'validation_failed']);
  return answer.body.errors.map(({ field, code }: { field: string; code: string }) => [field, code]);
}

const BOUNDS = { min_instances: 2, max_instances: 4, metric: 'cpu', target: 70 };

describe('scaling', () => {
  let application: DeployedApplication;
  let id: string;

  beforeEach(async () => {
    application = await deployed(service, await newApplication());
    id = application.processes.web as string;
  });

  it('is answered before it is done, and makes the application due', async () => {
    const due = await dueOf(application.id);
    const answer = await scale(application.id, id, { instances: 3 });
    expect([answer.status, answer.body]).toEqual([
      202,
      expect.objectContaining({ instances: 3, status: 'scaling', running_instances: 0 }),
    ]);
    expect(await dueOf(application.id)).toBe(due + 1);
  });

  it('takes a new target while it is scaling', async () => {
    await scale(application.id, id, { instances: 3 });
    expect(await scale(application.id, id, { instances: 1 })).toMatchObject({
      status: 202,
      body: { instances: 1, status: 'scaling' },
    });
  });

  it('takes two at a time one after the other', async () => {
    const answers = await Promise.all([1, 2, 3, 4].map((instances) => scale(application.id, id, { instances })));
    expect(answers.map(({ status }) => status)).toEqual([202, 202, 202, 202]);
    const { body } = await service.call('GET', place(application.id, id));
    const last = answers
      .map(({ body: { instances, updated_at } }) => ({ instances, updated_at }))
      .sort((a, b) => (a.updated_at < b.updated_at ? 1 : -1))[0];
    expect([1, 2, 3, 4]).toContain(body.instances);
    expect(body.updated_at).toBe(last?.updated_at);
    const [row] = await service.sql<{ version: number }>('select version from processes where id = $1', [id]);
    expect(row?.version).toBe(5);
  });

  it.each(['stopped', 'stopping', 'new'])('is stored while the application is %s', async (status) => {
    await service.sql('update applications set status = $2 where id = $1', [application.id, status]);
    await service.sql(`update processes set status = 'idle' where id = $1`, [id]);
    const due = await dueOf(application.id);
    expect(await scale(application.id, id, { instances: 3 })).toMatchObject({
      status: 202,
      body: { instances: 3, status: 'idle' },
    });
    expect(await dueOf(application.id)).toBe(due);
  });

  it('is stored for a type that no release has yet', async () => {
    const { body: worker } = await service.call('POST', place(application.id), { body: { type: 'worker' } });
    expect(await scale(application.id, worker.id, { instances: 2 })).toMatchObject({
      status: 202,
      body: { instances: 2, status: 'idle' },
    });
  });

  it('turns autoscaling on, within its bounds, and off', async () => {
    expect((await scale(application.id, id, { autoscaling: BOUNDS })).body).toMatchObject({
      instances: 2,
      autoscaling: BOUNDS,
      status: 'scaling',
    });
    expect(
      (await scale(application.id, id, { autoscaling: { ...BOUNDS, min_instances: 1, max_instances: 1 } })).body,
    ).toMatchObject({ instances: 1 });
    expect((await scale(application.id, id, { instances: 0 })).body).toMatchObject({ instances: 0, autoscaling: null });
  });

  const mistakes: [unknown, [string, string][]][] = [
    [
      {},
      [
        ['instances', 'required'],
        ['autoscaling', 'required'],
      ],
    ],
    [
      { instances: 1, autoscaling: BOUNDS },
      [
        ['instances', 'mutually_exclusive'],
        ['autoscaling', 'mutually_exclusive'],
      ],
    ],
    [{ instances: -1 }, [['instances', 'too_small']]],
    [{ command: 'x' }, [['command', 'immutable']]],
    [{ autoscaling: { ...BOUNDS, max_instances: 1 } }, [['autoscaling.max_instances', 'too_small']]],
  ];

  it.each(mistakes)('refuses %j', async (body, wanted) => {
    expect(errorsOf(await scale(application.id, id, body))).toEqual(expect.arrayContaining(wanted.slice(0, 1)));
  });

  it('has the limit of the size', async () => {
    expect((await scale(application.id, id, { instances: 11 })).body).toMatchObject({
      status: 422,
      code: 'scale_out_of_range',
      max_instances: 10,
    });
    expect((await scale(application.id, id, { autoscaling: { ...BOUNDS, max_instances: 11 } })).body).toMatchObject({
      code: 'scale_out_of_range',
    });
  });

  it('stands in the activity under the name of the type', async () => {
    await scale(application.id, id, { instances: 2 });
    const { body } = await service.call('GET', `/v2/projects/${service.project}/activity?resource_id=${id}`);
    expect(body.data[0]).toMatchObject({ action: 'process.scaled', resource: { type: 'process', id, name: 'web' } });
  });
});
