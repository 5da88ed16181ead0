// Who reads a resource and writes back what it read changes nothing: every operation that updates, on both faces. What
// can be cleared is as at the beginning once it is cleared.
import { isNonNullType } from 'graphql';
import type { Operation } from '../../contract/operations';
import { SAMPLE_SETTINGS } from '../support/builds/sample_repository';
import { clearableFields, formsOf, target, updates, writableOf, type Clearable } from '../support/contract/write_back';
import type { Form, Values } from '../support/contract/write_back_forms';
import { startDnsServer, type DnsServer } from '../support/dns/dns_server';
import { startService, type TestService } from '../support/service';
import { openWorld, type World } from '../support/world';

let service: TestService;
let dns: DnsServer;
let world: World;

beforeAll(async () => {
  dns = await startDnsServer();
  service = await startService({ settings: { ...SAMPLE_SETTINGS, DNS_RESOLVERS: dns.address } });
  world = openWorld(service);
});

afterAll(async () => {
  await service.close();
  await dns.close();
});

const cases = updates.flatMap((operation) =>
  formsOf(operation).map((form): [string, string, Operation, Form] => [operation.id, form.name, operation, form]),
);

const written = (operation: Operation, shown: Values): Values =>
  writableOf(operation.field.body!.type, shown) as Values;

/** What may differ between two answers though nothing was changed. */
const still = ({ updated_at: _, ...shown }: Values): Values => shown;

/** Of volumes: "A volume update that is meant to grow it must carry a size_gb greater than the current one." */
const ASKS = 'updateVolume size_gb';

test.each(cases)('%s, %s: what was read is sent back', async (_id, _name, operation, form) => {
  const { place, read, stored } = await target(world, operation, form);
  const [before, row] = [await read(), await stored()];
  const expectSame = async (): Promise<void> => {
    expect(still(await read())).toEqual(still(before));
    expect(await stored()).toEqual(row);
  };
  const body = written(operation, before);
  expect(Object.keys(body).length).toBeGreaterThan(0);

  const whole = await world.call(operation.method, place, { body });
  expect([whole.status, whole.body.errors ?? whole.body.detail]).toEqual([operation.status, undefined]);
  await expectSame();

  const { errors } = await overGraphql(operation, place, body);
  expect(errors).toBeUndefined();
  await expectSame();

  const fields = Object.values(operation.field.body!.type.getFields());
  const required = fields.filter(({ type }) => isNonNullType(type)).map(({ name }) => name);
  for (const name of Object.keys(body)) {
    const own = Object.fromEntries([...required, name].map((one) => [one, body[one]]));
    const answer = await world.call(operation.method, place, { body: own });
    const refused = `${operation.id} ${name}` === ASKS ? 'volume_size_must_increase' : undefined;
    expect([name, answer.body.code, answer.body.errors]).toEqual([name, refused, undefined]);
    await expectSame();
  }
});

function overGraphql(operation: Operation, place: string, input: Values): ReturnType<TestService['graphql']> {
  const { definition } = operation.field;
  const parts = place.split('/');
  const names = operation.path.split('/');
  const args = operation.params.map(({ name, argument }) => [argument, parts[names.indexOf(`{${name}}`)]] as const);
  const variables: Values = { ...Object.fromEntries(args), input };
  const named = definition.args.filter(({ name }) => name in variables);
  const query = `mutation (${named.map(({ name, type }) => `$${name}: ${String(type)}`).join(', ')}) {
    ${definition.name}(${named.map(({ name }) => `${name}: $${name}`).join(', ')}) { __typename } }`;
  return service.graphql(query, variables, { key: world.key, project: world.project });
}

const clearable = updates
  .filter(({ method }) => method === 'PATCH')
  .flatMap((operation) =>
    clearableFields(operation).map((field): [string, string, Operation, Clearable] => [
      operation.id,
      field.path,
      operation,
      field,
    ]),
  );

test('fields of all kinds can be cleared', () => {
  expect(new Set(clearable.map(([id]) => id)).size).toBeGreaterThan(12);
  expect(clearable.length).toBeGreaterThan(45);
});

test.each(clearable)(
  '%s: `%s` is as at the beginning when it was set and cleared',
  async (_, path, operation, field) => {
    const { place, read } = await target(world, operation, field.form);
    const send = async (body: Values): Promise<void> => {
      const answer = await world.call('PATCH', place, { body });
      expect([body, answer.status, answer.body.errors ?? answer.body.detail]).toEqual([
        body,
        operation.status,
        undefined,
      ]);
    };
    await send(field.clear);
    const before = valueAt(await read(), path);
    await send(await field.set(world, before));
    expect(valueAt(await read(), path)).not.toEqual(before);
    await send(field.clear);
    expect(valueAt(await read(), path)).toEqual(before);
  },
);

const valueAt = (shown: Values, path: string): unknown =>
  path.split('.').reduce((value: unknown, name) => (value as Values | null)?.[name], shown) ?? null;
