import { application, path, put, service, setUpVariables } from '../support/deployments/environment_variable_cases';

setUpVariables();

async function keys(query = ''): Promise<string[]> {
  const { body } = await service.call('GET', `${path}?${query}`);
  return body.data.map((row: { key: string }) => row.key);
}

describe('PUT', () => {
  it('answers 201 when it creates and 200 when it updates', async () => {
    const made = await put('DATABASE_URL', { value: 'one' });
    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      application_id: application,
      key: 'DATABASE_URL',
      value: 'one',
      value_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      available_at: 'both',
      managed_by: null,
      created_at: expect.any(String),
      updated_at: made.body.created_at,
    });
    const changed = await put('DATABASE_URL', { value: 'two', available_at: 'build' });
    expect(changed.status).toBe(200);
    expect(changed.body).toMatchObject({ value: 'two', available_at: 'build', created_at: made.body.created_at });
    expect(changed.body.value_hash).not.toBe(made.body.value_hash);
    const kept = await put('DATABASE_URL', { value: 'one' });
    expect(kept.body).toMatchObject({ value: 'one', available_at: 'build', value_hash: made.body.value_hash });
    expect((await service.call('GET', path)).body).toEqual({ data: [kept.body], next_cursor: null });
  });

  it('takes every value up to 32768 bytes as it is', async () => {
    const values = [
      '',
      ' ',
      'ü'.repeat(16_384),
      'line\nbreak\ttab "quotes" \\ $HOME',
      '\u0001\u001f',
      '🐘'.repeat(8192),
      '{"a":1}',
    ];
    for (const [index, value] of values.entries()) {
      expect((await put(`VALUE_${index}`, { value })).status).toBe(201);
      expect((await service.call('GET', `${path}?key=VALUE_${index}`)).body.data[0].value).toBe(value);
    }
  });

  it('takes every key of the form, case-sensitive', async () => {
    for (const key of ['_', 'a', 'A', 'a1', 'PORTS', 'port', 'SVC', 'svc_x', 'K'.repeat(128)])
      expect([key, (await put(key, { value: '' })).status]).toEqual([key, 201]);
    expect(await keys('key=a')).toEqual(['a']);
  });

  it('refuses bad keys, reserved keys and bad bodies', async () => {
    for (const key of ['1A', 'A-B', 'A.B', 'A%20B', '%C3%84', 'A%2FB', '%24A']) {
      const answer = await put(key, { value: '' });
      expect([key, answer.status, answer.body.errors]).toEqual([
        key,
        422,
        [expect.objectContaining({ field: 'key', code: 'invalid_format' })],
      ]);
    }
    expect((await put('K'.repeat(129), { value: '' })).body.errors).toEqual([
      expect.objectContaining({ field: 'key', code: 'too_long' }),
    ]);
    for (const key of ['PORT', 'SVC_', 'SVC_TOKEN'])
      expect((await put(key, { value: '' })).body).toMatchObject({ status: 422, code: 'env_key_reserved' });
    const bodies: [unknown, string, string][] = [
      [{}, 'value', 'required'],
      [{ value: null }, 'value', 'required'],
      [{ value: 5 }, 'value', 'invalid_type'],
      [{ value: 'x'.repeat(32_769) }, 'value', 'too_long'],
      [{ value: 'ü'.repeat(16_385) }, 'value', 'too_long'],
      [{ value: 'a\0b' }, 'value', 'invalid_format'],
      [{ value: '', available_at: 'never' }, 'available_at', 'not_in_enum'],
      [{ value: '', available_at: null }, 'available_at', 'required'],
      [{ value: '', managed_by: 'att_1' }, 'managed_by', 'immutable'],
      [{ value: '', note: '' }, 'note', 'unknown_field'],
    ];
    for (const [body, field, code] of bodies) {
      const answer = await put('KEY', body);
      expect([answer.status, answer.body.errors]).toEqual([422, [expect.objectContaining({ field, code })]]);
    }
    expect(await keys()).toEqual([]);
  });

  it('creates once when many put one key at once', async () => {
    for (let round = 0; round < 5; round += 1) {
      const answers = await Promise.all(
        Array.from({ length: 6 }, (_, index) => put(`RACE_${round}`, { value: String(index) })),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 201]);
    }
    expect(await keys()).toHaveLength(5);
  });

  it('stops at 500 variables, also in a race, and still updates', async () => {
    await service.sql(
      `insert into environment_variables (id, project_id, application_id, key, value, value_hash, created_at,
        updated_at)
       select 'env_' || lpad(n::text, 26, '0'), $1, $2, 'FILL_' || n, '', '', now(), now()
         from generate_series(1, 499) n`,
      [service.project, application],
    );
    const answers = await Promise.all(['ONE', 'TWO', 'THREE'].map((key) => put(key, { value: '' })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 403, 403]);
    expect(answers.find(({ status }) => status === 403)?.body).toMatchObject({
      code: 'quota_exceeded',
      resource: 'environment_variables',
      used: 500,
      limit: 500,
    });
    expect((await put('FILL_1', { value: 'new' })).status).toBe(200);
  });

  it('honours If-Match of the variable, not of the application', async () => {
    const etag = (await put('TAGGED', { value: '1' })).headers.get('etag') as string;
    await service.call('PATCH', `/v2/applications/${application}`, {
      body: { description: 'Raises the version of the application' },
    });
    expect((await put('TAGGED', { value: '2' }, { 'If-Match': etag })).status).toBe(200);
    expect((await put('TAGGED', { value: '3' }, { 'If-Match': etag })).status).toBe(412);
    expect((await put('ABSENT', { value: '1' }, { 'If-Match': '*' })).status).toBe(412);
    expect((await service.call('DELETE', `${path}/TAGGED`, { headers: { 'If-Match': etag } })).status).toBe(412);
  });
});

describe('list', () => {
  it('sorts by key, filters, and walks pages', async () => {
    for (const [key, available_at] of [
      ['b', 'build'],
      ['C', 'runtime'],
      ['a', 'both'],
      ['D', 'build'],
    ])
      await put(key as string, { value: '', available_at });
    expect(await keys()).toEqual(['C', 'D', 'a', 'b']);
    expect(await keys('sort=-key')).toEqual(['b', 'a', 'D', 'C']);
    expect(await keys('sort=created_at')).toEqual(['b', 'C', 'a', 'D']);
    expect(await keys('sort=-created_at')).toEqual(['D', 'a', 'C', 'b']);
    expect(await keys('available_at=build')).toEqual(['D', 'b']);
    expect(await keys('key=C')).toEqual(['C']);
    expect(await keys('key=C&available_at=build')).toEqual([]);
    const first = (await service.call('GET', `${path}?limit=3`)).body;
    const second = (await service.call('GET', `${path}?limit=3&cursor=${first.next_cursor}`)).body;
    expect([...first.data, ...second.data].map(({ key }) => key)).toEqual(['C', 'D', 'a', 'b']);
    expect(second.next_cursor).toBeNull();
    expect((await service.call('GET', `${path}?available_at=never`)).body).toMatchObject({
      status: 400,
      parameter: 'available_at',
    });
  });

  it('comes in pages of 100 by default', async () => {
    for (let index = 0; index < 101; index += 1) await put(`KEY_${index}`, { value: String(index) });
    const { body } = await service.call('GET', path);
    expect([body.data.length, typeof body.next_cursor]).toEqual([100, 'string']);
  });
});

describe('DELETE', () => {
  it('removes, and answers 404 for what is not there', async () => {
    await put('GONE', { value: '' });
    expect((await service.call('DELETE', `${path}/GONE`)).status).toBe(204);
    expect((await service.call('DELETE', `${path}/GONE`)).body).toMatchObject({ status: 404, code: 'not_found' });
    expect((await put('GONE', { value: '' })).status).toBe(201);
  });

  it('leaves managed variables alone, as PUT does', async () => {
    await put('MANAGED', { value: 'theirs' });
    await service.sql(
      `update environment_variables set managed_by = 'att_01h455vb4pex5vsknk084sn02q' where application_id = $1`,
      [application],
    );
    const wanted = { status: 409, code: 'env_key_managed', managed_by: 'att_01h455vb4pex5vsknk084sn02q' };
    expect((await service.call('DELETE', `${path}/MANAGED`)).body).toMatchObject(wanted);
    expect((await put('MANAGED', { value: 'mine' })).body).toMatchObject(wanted);
    expect((await service.call('GET', path)).body.data).toMatchObject([{ value: 'theirs' }]);
  });
});
