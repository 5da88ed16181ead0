// Copies with masks as a request sees them: what is refused at once, and what is kept. What becomes of the values:
// test/engines/databases/masked_copies.test.ts.
import { expressionMistake, looksPersonal } from '../../core/mask_rules';
import { planMask, unmaskedColumns, type MaskCatalog, type MaskColumn } from '../../drivers/database/masks/mask';
import { fresh, scheduled, service, setUpBackups } from '../support/databases/database_backup_cases';

setUpBackups();

let serial = 0;
const copy = (body: object, options: object = {}): ReturnType<typeof service.call> =>
  service.call('POST', '/v2/databases', {
    body: { name: `copy-${(serial += 1)}`, engine: 'postgresql', ...body },
    ...options,
  });

const RULE = { table: 'customers', column: 'email', rule: 'fake_email' };

async function backupOf(engine = 'postgresql'): Promise<string> {
  const { id } = await fresh({ engine });
  return scheduled(id);
}

describe('a copy', () => {
  it('keeps its rules, and says what it is a copy of', async () => {
    const backup_id = await backupOf();
    const constant = { table: 'sales.orders', column: 'note', rule: 'constant', value: "it's" };
    const made = await copy({ copy_of: { backup_id }, mask: [RULE, constant] });
    expect(made).toMatchObject({ status: 201 });
    expect(made.body).toMatchObject({
      mask: [{ ...RULE, value: null }, constant],
      ...{ unmasked_columns: [], preview_id: null, status: 'provisioning' },
      restore_from: { backup_id, point_in_time: null },
    });
  });

  it('of a backup needs no mask', async () => {
    const backup_id = await backupOf();
    expect((await copy({ copy_of: { backup_id } })).body).toMatchObject({ mask: null, restore_from: { backup_id } });
  });

  it('is refused for what is no backup of the project, or is not there any more', async () => {
    const gone = await backupOf();
    await service.sql('update database_backups set deleted_at = now() where id = $1', [gone]);
    const foreign = await backupOf();
    const other = (await service.call('POST', '/v2/projects', { body: { name: 'other' } })).body.id;
    await service.sql('update database_backups set project_id = $2 where id = $1', [foreign, other]);
    for (const backup_id of [gone, foreign, 'bkp_01h455vb4pex5vsknk084sn02q'])
      expect((await copy({ copy_of: { backup_id } })).body).toMatchObject({
        ...{ code: 'reference_not_found', field: 'copy_of.backup_id' },
      });
  });

  it.each([
    [{ mask: [RULE] }, 'mask'],
    [{ copy_of: true, restore_from: true }, 'copy_of'],
    [{ copy_of: true, mask: [RULE, { ...RULE, rule: 'hash' }] }, 'mask.1.column'],
    [{ copy_of: true, mask: [{ ...RULE, rule: 'constant' }] }, 'mask.0.value'],
    [{ copy_of: true, mask: [{ ...RULE, value: 'x' }] }, 'mask.0.value'],
    [{ copy_of: true, mask: [{ ...RULE, rule: 'expression', value: '1) where false and (true' }] }, 'mask.0.value'],
    [{ copy_of: true, mask: [] }, 'mask'],
    [{ copy_of: true, mask: [{ ...RULE, rule: 'null' }] }, 'mask.0.rule'],
  ])('%j is refused', async (sent: { copy_of?: boolean; restore_from?: boolean; mask?: object[] }, field: string) => {
    const { id } = await fresh();
    const backup_id = await scheduled(id);
    const body = {
      ...(sent.mask && { mask: sent.mask }),
      ...(sent.copy_of && { copy_of: { backup_id } }),
      ...(sent.restore_from && { restore_from: { backup_id, database_id: id } }),
    };
    expect(await copy(body)).toMatchObject({
      ...{ status: 422, body: { code: 'validation_failed', errors: [{ field }] } },
    });
  });

  it('of a key-value engine takes no mask', async () => {
    const backup_id = await backupOf('redis');
    expect((await copy({ engine: 'redis', copy_of: { backup_id }, mask: [RULE] })).body).toMatchObject({
      ...{ code: 'engine_feature_unsupported', engine: 'redis', feature: 'mask' },
    });
  });

  it('needs the right to write', async () => {
    const backup_id = await backupOf();
    const key = await service.mintKey({ scopes: ['read'] });
    expect(await copy({ copy_of: { backup_id }, mask: [RULE] }, { key })).toMatchObject({
      status: 403,
    });
  });
});

describe('an expression', () => {
  it.each([
    ['upper(name)', null],
    [`left(name, 1) || ')' || $$);--$$ || "a)b"`, null],
    [`E'it\\'s (' || 'a''(b'`, null],
    ['1)', 'open each parenthesis that it closes'],
    ['1, (select 1', 'close each parenthesis that it opens'],
    ['1 -- x', 'not hold comments'],
    ['1 /* x', 'not hold comments'],
    ['1; drop table x', 'be one expression, without a semicolon'],
    [`'open`, 'end what it quotes'],
    [`'a\\' || ')'`, null],
    ['$x$ ) $y$', 'end what it quotes'],
    ['a$x$ ) $x$', 'open each parenthesis that it closes'],
  ])('of PostgreSQL: %s', (text, mistake) => expect(expressionMistake(text, 'postgresql')).toBe(mistake));

  it.each([
    ["concat('a\\'(', `b)`, \"c)\")", null],
    ["'a\\' ) '", null],
    ['1 # x', 'not hold comments'],
    ["'a''b' )", 'open each parenthesis that it closes'],
  ])('of MariaDB: %s', (text, mistake) => expect(expressionMistake(text, 'mysql')).toBe(mistake));
});

test('columns look personal by the words of their names', () => {
  const personal = ['email', 'customerEmail', 'home_phone', 'last_name', 'IBAN', 'birth_date', 'client_ip', 'ssn'];
  expect(personal.filter((name) => !looksPersonal(name))).toEqual([]);
  const others = ['total', 'created_at', 'email_verified', 'address_id', 'description', 'shipping', 'renamed'];
  expect(others.filter(looksPersonal)).toEqual([]);
});

describe('by the catalog', () => {
  const column = (name: string, more: Partial<MaskColumn> = {}): MaskColumn => ({
    ...{ name, type: 'text', kind: 'text', length: null, isNullable: true, unique: 'no', fixed: null, ...more },
  });
  const catalog: MaskCatalog = {
    tables: [
      {
        ...{ name: 'public.people', identifier: 'people', fixed: null },
        columns: [
          column('id', { kind: 'other', type: 'integer', isNullable: false }),
          column('mail', { unique: 'alone', isNullable: false, length: 40 }),
          column('code', { unique: 'alone', length: 8 }),
          column('phone'),
        ],
      },
      {
        ...{ name: 'public.orders', identifier: 'orders', fixed: null },
        columns: [column('mail', { length: 30 }), column('total', { kind: 'other', type: 'numeric' })],
      },
      { ...{ name: 'public.seen', identifier: 'seen', fixed: 'is a view: name its tables.' }, columns: [column('a')] },
      { ...{ name: 'old.people', identifier: 'old.people', fixed: null }, columns: [column('name')] },
      {
        ...{ name: 'old.notes', identifier: 'old.notes', fixed: null },
        columns: [column('a', { fixed: 'is fixed.' })],
      },
    ],
    foreignKeys: [
      { table: 'public.orders', columns: ['mail'], referenced: 'public.people', referencedColumns: ['mail'] },
    ],
  };
  const plan = (...rules: [string, string, string][]) =>
    planMask(
      catalog,
      rules.map(([table, name, rule]) => ({ table, column: name, rule: rule as 'hash', value: null })),
    );

  it.each([
    [['nobody', 'a', 'hash'], /table `nobody`, which the copy does not have/],
    [['people', 'a', 'hash'], /column `public.people.a`, which the copy does not have/],
    [['people', 'mail', 'set_null'], /cannot be null/],
    [['people', 'mail', 'constant'], /are unique, so `constant`/],
    [['people', 'id', 'hash'], /of the type integer, and `hash` makes text and UUIDs/],
    [['people', 'code', 'hash'], /too short for `hash`, whose values are unique: it takes 8 characters, and 12/],
    [['people', 'mail', 'hash'], /`public.orders.mail` refers to `public.people.mail`. Give both the rule `hash`/],
    [['orders', 'mail', 'fake_email'], /refers to/],
    [['seen', 'a', 'hash'], /`public.seen`, which is a view/],
    [['notes', 'a', 'hash'], /column `old.notes.a` is fixed/],
  ])('%j is refused', (rule, message) => expect(() => plan(rule as [string, string, string])).toThrow(message));

  it('gives columns that refer to each other hashes of one length, and names what is left', () => {
    const masked = plan(['people', 'mail', 'hash'], ['orders', 'mail', 'hash']);
    expect(masked.map(({ columns }) => columns[0]?.digits)).toEqual([30, 30]);
    expect(unmaskedColumns(catalog, masked)).toEqual(['public.people.phone', 'old.people.name']);
  });

  it('lets a reference be null', () => expect(plan(['orders', 'mail', 'set_null'])).toHaveLength(1));
});
