/** @user any */
// Which jar of a build is the program, whatever jars are called.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('jar');

const SCRIPT = path.join(__dirname, '../../../drivers/builder/java/find_jar.sh');
let root: string;
let home: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'platform-find-jar-'));
  const [jar = ''] = execFileSync('sh', ['-c', 'command -v jar']).toString().split('\n');
  home = path.dirname(path.dirname(realpathSync(jar)));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function pack(name: string, manifest: string): void {
  mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
  writeFileSync(path.join(root, 'manifest'), manifest);
  execFileSync('jar', ['cfm', name, 'manifest', 'manifest'], { cwd: root });
}

function find(places: string): { code: number | null; program: string; error: string } {
  const { status, stderr } = spawnSync('sh', [SCRIPT, places], {
    cwd: root,
    env: { ...process.env, JAVA_HOME: home },
  });
  const program = status === 0 ? readFileSync(path.join(root, '.platform/jar'), 'utf8').trimEnd() : '';
  return { code: status, program, error: stderr.toString() };
}

test('it is the one with Main-Class, also with a space in its name', () => {
  pack('target/the library.jar', '');
  pack('target/the shop.jar', 'Main-Class: Shop\n');
  pack('target/shop-sources.jar', 'Main-Class: Shop\n');
  writeFileSync(path.join(root, 'target/broken.jar'), 'no archive');
  expect(find('target/*.[jw]ar')).toMatchObject({ code: 0, program: 'target/the shop.jar' });
});

test('several are named, and so is where there is none', () => {
  pack('a/target/one.jar', 'Main-Class: One\n');
  pack('b/target/two.jar', 'Main-Class: Two\n');
  expect(find('target/*.[jw]ar */target/*.[jw]ar')).toMatchObject({
    ...{ code: 1, error: expect.stringMatching(/: a\/target\/one\.jar b\/target\/two\.jar\..*-jar a\/target\/one/) },
  });
  expect(find('target/*.[jw]ar')).toMatchObject({ code: 1, error: expect.stringContaining('no jar that starts') });
});

test('it is the one of Quarkus where that has built one', () => {
  pack('target/shop.jar', 'Main-Class: Shop\n');
  pack('target/quarkus-app/quarkus-run.jar', '');
  const places = 'target/quarkus-app/quarkus-run.jar target/*.[jw]ar';
  expect(find(places)).toMatchObject({ code: 0, program: 'target/quarkus-app/quarkus-run.jar' });
});
