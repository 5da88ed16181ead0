/** @user any */
// .dockerignore by the rules of Docker, for the files that `svc up` and the dashboard send.
import { DockerPatternError, parseDockerRules } from '../../core/protocols/docker_rules';
import dockerPatterns from '../support/cli/docker_patterns.json';
import { openSourceFolders, type SourceFolders } from '../support/cli/source_folders';

let { findSourceFiles, namesIn, folderOf, repositoryOf }: SourceFolders = {} as SourceFolders;
let folders: SourceFolders;
beforeAll(() => {
  folders = openSourceFolders();
  ({ findSourceFiles, namesIn, folderOf, repositoryOf } = folders);
});
afterAll(() => folders.remove());

describe('.dockerignore', () => {
  test('has the rules of Docker: the tables of moby/patternmatcher', () => {
    const different = (dockerPatterns as [string[], string, boolean | null][]).filter(([patterns, text, expected]) => {
      let found: boolean | null = null;
      try {
        found = parseDockerRules(patterns.join('\n'), '.dockerignore')(text);
      } catch (error) {
        expect(error).toBeInstanceOf(DockerPatternError);
        expect((error as Error).message).toMatch(/^\.dockerignore: ".+" is no pattern that Docker knows\.$/s);
      }
      return found !== expected;
    });
    expect(different).toEqual([]);
    expect(dockerPatterns.length).toBeGreaterThan(130);
    const lines = parseDockerRules('\uFEFF/test1\r\n# note\r\n\r\n  dir/  \n! /dir/abs/path\n #x\n', 'f');
    const names = ['test1', 'sub/test1', 'dir/a', 'dir/abs/path', '#x', '# note'];
    expect(names.filter(lines)).toEqual(['test1', 'dir/a', '#x']);
  });

  test('takes back what lies below a folder that was left out, and what Docker itself reads', () => {
    const files = {
      '.dockerignore': '*\n!src/app\n!package.json\nsrc/app/*.test.js\n**/deploy\n',
      ...{ 'src/app/a.js': '', 'src/app/a.test.js': '', 'src/lib/b.js': '', 'package.json': '', 'README.md': '' },
      ...{ Dockerfile: '', 'deploy/web.Dockerfile': '', 'deploy/values.yaml': '' },
    };
    const expected = ['.dockerignore', 'Dockerfile', 'deploy/web.Dockerfile', 'package.json', 'src/app/a.js'];
    expect(namesIn(folderOf(files))).toEqual(expected);
    const { files: found, notices } = findSourceFiles(repositoryOf(files, '.'));
    expect(found.map(({ name }) => name)).toEqual(expected);
    expect(notices).toEqual([
      'Not sent, since .dockerignore leaves them out: README.md and 3 more files, which Git tracks.',
    ]);
  });

  test('gives way to that of the Dockerfile', () => {
    const folder = folderOf({ '.dockerignore': 'a\n', 'Dockerfile.dockerignore': 'b\n', a: '', b: '' });
    expect(namesIn(folder)).toEqual(['.dockerignore', 'Dockerfile.dockerignore', 'a']);
  });
});
