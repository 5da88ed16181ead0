/** @tier heavy @quarter 3 @covers clients/cli server/operator */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { dataDir, first, json, run, setUpCommand } from '../support/processes/operator_command';

setUpCommand();

test('variables are set together, from the command line and from a file, and listed without values', async () => {
  const headers = { Authorization: `Bearer ${first.key}`, 'Content-Type': 'application/json' };
  const made = await fetch(`${first.base_url}/v2/applications`, {
    method: 'POST',
    headers: { ...headers, 'X-Svc-Project': first.project_id },
    body: JSON.stringify({ name: 'variables' }),
  });
  const { id } = (await made.json()) as { id: string };
  const file = path.join(dataDir, 'shop.env');
  writeFileSync(file, '# Secrets\nFROM_FILE="hush hush"\n');
  const { data } = await json(['env', 'set', id, 'A=1', 'B=x=y', '--file', file]);
  expect(data.map(({ key }: { key: string }) => key)).toEqual(['FROM_FILE', 'A', 'B']);
  await json(['env', 'set', id, '--file', '-'], 'A=2\n');
  const list = await run(['env', 'list', id, '--json']);
  expect(JSON.parse(list.out).data.map(({ key }: { key: string }) => key)).toEqual(['A', 'B', 'FROM_FILE']);
  expect(list.out).not.toContain('hush');
  const bad = await run(['env', 'set', id, 'C=hush', 'PORT=hush', 'D=hush']);
  expect([bad.code, bad.err]).toEqual([1, 'platform: Reserved for the platform: PORT.\n']);
  const worse = await run(['env', 'set', id, '1C=hush', 'A=1', 'A=2']);
  expect([worse.code, worse.err]).toEqual([
    1,
    expect.stringMatching(/^platform: A occurs more than once; 1C must consist of letters/),
  ]);
  const answer = await fetch(`${first.base_url}/v2/applications/${id}/env`, {
    headers: { ...headers, 'X-Svc-Project': first.project_id },
  });
  const { data: stored } = (await answer.json()) as { data: { key: string; value: string }[] };
  expect(stored.map(({ key, value }) => [key, value])).toEqual([
    ['A', '2'],
    ['B', 'x=y'],
    ['FROM_FILE', 'hush hush'],
  ]);
  const activity = await fetch(
    `${first.base_url}/v2/projects/${first.project_id}/activity?action=environment_variable.set`,
    { headers },
  );
  const { data: entries } = (await activity.json()) as { data: { actor: object; changed_fields: string[] }[] };
  expect(entries.map(({ actor, changed_fields }) => [actor, changed_fields])).toEqual([
    [{ type: 'system', id: null, name: expect.stringMatching(/^Operator \(\w/) }, ['A']],
    [{ type: 'system', id: null, name: expect.stringMatching(/^Operator \(\w/) }, ['FROM_FILE', 'A', 'B']],
  ]);
});
