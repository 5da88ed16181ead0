/** @tier heavy @quarter 2 @covers clients/dashboard server/http/dashboard.ts */
// Each page and each form that is made of the SDL, with rows of every kind, by the rules of axe, from 320 pixels to
// wide. A page shows what REST answers, or says what REST says.
import { overflow, settled, violations, visit, WIDTHS, type Window } from '../support/dashboard/chromium';
import { resourceTable, type Table } from '../support/dashboard/generic';
import { worldDashboard } from '../support/dashboard/world_dashboard';
import type { TestService } from '../support/service';
import { operations, type World } from '../support/world';

let table: Table;
let service: TestService;
let window: Window;
let world: World;
worldDashboard(async (opened) => {
  ({ service, world, window } = opened);
  table = resourceTable();
  // Deleted projects are listed for those who owned them.
  await service.sql(
    `insert into members (project_id, user_id, role)
      select d.resource_id, u.id, 'owner' from deleted_resources d, users u where d.id = $1 on conflict do nothing`,
    [await world.id('deleted_project')],
  );
  await visit(window.page, `/projects/${service.project}/resources`);
});

/** Path on REST of an operation, with ids of rows that are there. */
async function restPath(name: string): Promise<string> {
  const operation = operations.find(({ id }) => id === name);
  if (!operation) throw new Error(`no operation ${name}`);
  return world.path(operation);
}

/** Address of a page. */
async function addressOf(key: string): Promise<string> {
  const page = table.pages[key] as Table['pages'][string];
  // An item that no GET reads is addressed by what deletes it.
  const name = page.finds ? page.operations.find((one) => !/^(list|get)/.test(one)) : page.read;
  const depth = key.split('/').length;
  const rest = (await restPath(name as string)).split('/').slice(2);
  const inside = rest[0] === 'projects' ? rest.slice(2) : rest;
  // Entries of the activity and of the bin are named without their project.
  const parts = /^project(?:\/|$)/.test(key) ? ['project', ...inside] : rest;
  const root = page.scope === 'project' ? `/projects/${service.project}` : '';
  return `${root}/resources/${parts.slice(0, depth).join('/')}`;
}

/** Shows another page without loading the script again. */
async function go(to: string): Promise<void> {
  await window.page.evaluate(`(async () => {
    history.pushState(null, '', ${JSON.stringify(to)});
    dispatchEvent(new PopStateEvent('popstate'));
    for (let frame = 0; frame < 3; frame += 1) await new Promise((resolve) => requestAnimationFrame(resolve));
  })()`);
  await settled(window.page);
}

/** What tells of a key has nothing to tell of a session. */
const FOR_KEYS: Record<string, string> = { me: 'getMe describes an API key.' };

let seen = 0;

/** At one width after the other: what is wrong with the page. */
async function faults(): Promise<string[]> {
  const width = WIDTHS[(seen += 1) % WIDTHS.length] as number;
  await window.page.setViewportSize({ width, height: 800 });
  const wider = await overflow(window.page);
  return [...(await violations(window.page)), ...(wider ? [`${wider} pixels wider than ${width}`] : [])];
}

const keysOf = (group: string): string[] => Object.keys(table.pages).filter((key) => table.pages[key]?.group === group);
const groups = [...new Set(operations.map(({ group }) => group))].sort();

test.each(groups)('pages of the group %s', async (group) => {
  for (const key of keysOf(group)) {
    const page = table.pages[key] as Table['pages'][string];
    const place = await addressOf(key);
    const rest = page.finds ? null : await service.call('GET', await restPath(page.read));
    await go(place);
    const problem = window.page.locator('main .notice.bad');
    const said = (await problem.count()) ? await problem.first().innerText() : null;
    const refused = rest && rest.status >= 400 ? rest.body.detail : (FOR_KEYS[key] ?? null);
    expect([key, said]).toEqual([key, refused]);
    expect([key, await faults()]).toEqual([key, []]);
    const offered = await window.page.locator('.page-head a[href*="?do="]').count();
    expect([key, offered]).toEqual([key, page.operations.length]);
  }
});

test.each(groups)('forms of the group %s', async (group) => {
  for (const key of keysOf(group)) {
    const place = await addressOf(key);
    for (const name of table.pages[key]?.operations ?? []) {
      await go(`${place}?do=${name}`);
      expect([name, await window.page.locator('form.generic-form button[type=submit]').count()]).toEqual([name, 1]);
      expect([name, await faults()]).toEqual([name, []]);
    }
  }
});

test('nothing was complained of, but that a session is no key', () => {
  expect([...window.origins]).toEqual([service.url]);
  const own = window.complaints.filter((text) => !text.includes('401 (Unauthorized)'));
  expect([own, window.complaints.length]).toEqual([[], 1]);
});
