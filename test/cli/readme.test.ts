// The first ten minutes of the README, as somebody pastes them.
import * as fs from 'node:fs';
import path from 'node:path';
import { version as packageVersion } from '../../package.json';
import { buildCli, openHome, type Home } from '../support/cli/svc';
import { openHall, type Hall } from '../support/databases/database_hall';
import { pasteDocument } from '../support/processes/tour';
import { needs } from '../support/runner/programs';

let hall: Hall;
let home: Home;
beforeAll(async () => {
  buildCli();
  hall = await openHall();
  home = openHome(hall.service);
});
afterAll(async () => {
  home?.remove();
  await hall?.close();
});

needs('bash', 'curl').test(
  'the README runs as it stands',
  async () => {
    const { url, key, project } = hall.service;
    const first = { base_url: url, key, project_id: project };
    fs.writeFileSync(path.join(home.directory, 'first-key.json'), JSON.stringify(first));
    const outputs = await pasteDocument('clients/cli/README.md', {
      ...{ HOME: home.directory, TMPDIR: home.directory, PLATFORM_DATA_DIR: home.directory },
    });
    const [, version, login, up, env, seen, ran, changed, database, api, cleared] = outputs;
    expect(outputs).toHaveLength(11);
    expect(version).toBe(`${packageVersion}\n`);
    expect(login).toMatch(/user\towner@example\.com\n[^]*scopes\tread write/);
    expect(up).toBe('Hello from version 1\n');
    expect(env).toMatch(/status\trunning\n[^]*Good morning from version 1\n/);
    expect(seen).toMatch(/application\thello\n[^]*\nins_\w+\tweb\trunning[^]*GET \/ 200[^]*\nweb\t2\t2\trunning\n$/);
    expect(ran).toBe('GREETING="Good morning"\nGood morning\nended with 3\n');
    expect(changed).toMatch(/^http\S+\nGood morning from version 2\nhttp\S+\nGood morning from version 1\n$/);
    expect(database).toMatch(/\nhello-data\tpostgresql [^]*DATABASE_URL\t/);
    expect(api).toMatch(/^available\nuploads\ncurl 'http\S+\/v2\/volumes' [^]*Bearer \$SVC_TOKEN/);
    expect(cleared).toBe('');
    expect(fs.readFileSync(path.join(home.directory, '.config/svc/credentials.json'), 'utf8')).not.toContain(key);
  },
  120_000,
);
