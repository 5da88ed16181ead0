// Process types changed and deleted (docs/contract/resources.md §7).
import { deployed, instanceOf } from '../support/deployments/deployed';
import { type Answer } from '../support/service';
import {
  BOUNDS,
  created,
  errorsOf,
  newApplication,
  place,
  post,
  service,
  setUpProcesses,
  web,
} from '../support/deployments/process_cases';

setUpProcesses();

const patch = (application: string, id: string, body: unknown): Promise<Answer> =>
  service.call('PATCH', place(application, id), { body });

const scale = (application: string, id: string, body: unknown): Promise<Answer> =>
  service.call('POST', `${place(application, id)}/scale`, { body });

const dueOf = async (application: string): Promise<number> =>
  (await service.sql<{ generation: number }>('select generation from applications where id = $1', [application]))[0]
    ?.generation as number;

describe('change', () => {
  it('sets and clears command and size, and touches nothing that runs', async () => {
    const application = await deployed(service, await newApplication());
    const id = application.processes.web as string;
    const due = await dueOf(application.id);
    expect((await patch(application.id, id, { command: 'node own.js', application_type: 'm-1gb' })).body).toMatchObject(
      { command: 'node own.js', application_type: 'm-1gb', status: 'running' },
    );
    expect((await patch(application.id, id, { command: null, application_type: null })).body).toMatchObject({
      command: null,
      // That of the deployment.
      effective_command: 'node server.js',
      application_type: null,
    });
    expect(await dueOf(application.id)).toBe(due);
  });

  it('keeps to the rules', async () => {
    const application = await newApplication();
    const id = await web(application);
    expect(errorsOf(await patch(application, id, { type: 'other' }))).toEqual([['type', 'immutable']]);
    expect(errorsOf(await patch(application, id, { instances: 2 }))).toEqual([['instances', 'immutable']]);
    expect((await patch(application, id, {})).status).toBe(422);
    expect((await patch(application, id, { application_type: 'huge' })).body).toMatchObject({
      code: 'reference_not_found',
      field: 'application_type',
    });
  });

  it('refuses a size that does not allow what is wanted', async () => {
    const application = await newApplication();
    const id = await web(application);
    await scale(application, id, { instances: 10 });
    expect((await patch(application, id, { application_type: 'xs-256mb' })).body).toMatchObject({
      code: 'scale_out_of_range',
      max_instances: 5,
    });
    await scale(application, id, { autoscaling: { ...BOUNDS, max_instances: 9 } });
    await scale(application, id, { instances: 5 });
    expect((await patch(application, id, { application_type: 'xs-256mb' })).status).toBe(200);
  });

  it('checks If-Match against the process type', async () => {
    const application = await newApplication();
    const id = await web(application);
    const { headers } = await service.call('GET', place(application, id));
    const stale = headers.get('etag') as string;
    expect(
      (await service.call('PATCH', place(application, id), { body: { command: 'a' }, headers: { 'If-Match': stale } }))
        .status,
    ).toBe(200);
    expect(
      (await service.call('PATCH', place(application, id), { body: { command: 'b' }, headers: { 'If-Match': stale } }))
        .body.code,
    ).toBe('precondition_failed');
    expect((await service.call('DELETE', place(application, id), { headers: { 'If-Match': stale } })).body.code).toBe(
      'precondition_failed',
    );
  });
});

describe('deletion', () => {
  it('protects web', async () => {
    const application = await newApplication();
    expect((await service.call('DELETE', place(application, await web(application)))).body).toMatchObject({
      status: 409,
      code: 'resource_protected',
    });
  });

  it('stops its instances, those of previews too, and no others', async () => {
    const plain = await newApplication();
    const worker = await created(plain, { type: 'worker', instances: 1 });
    const application = await deployed(service, plain);
    const gone = [
      await instanceOf(service, application, 'worker'),
      await instanceOf(service, application, 'worker', { status: 'crashed' }),
    ];
    const stays = await instanceOf(service, application, 'web');
    const due = await dueOf(plain);
    const answer = await service.call('DELETE', place(plain, worker.id));
    expect([answer.status, answer.text]).toEqual([204, '']);
    const rows = await service.sql<{ id: string; status: string; due: boolean }>(
      'select id, status, next_at <= now() as due from instances where application_id = $1 order by id',
      [plain],
    );
    expect(rows).toEqual([
      ...gone.map((id) => ({ id, status: 'stopping', due: true })),
      { id: stays, status: 'running', due: true },
    ]);
    expect(await dueOf(plain)).toBeGreaterThan(due);
    expect((await service.call('GET', place(plain, worker.id))).status).toBe(404);
    expect((await service.call('DELETE', place(plain, worker.id))).status).toBe(404);
    expect((await post(plain, { type: 'worker' })).status).toBe(201);
  });
});
