/** @tier heavy @quarter 4 @covers drivers/toolchain drivers/builder/go */
// The standard library of Go is compiled once for the host, and no tenant changes what others link.
import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { startDeployService, type DeployService, type TestApplication } from '../../support/deployments/deploy';
import type { GitFiles } from '../../support/git/git_server';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('go');

let service: DeployService;
beforeAll(async () => {
  service = await startDeployService();
}, 60_000);
afterAll(() => service?.close(), 60_000);

/** The library is compiled at the first deployment, on a busy machine for minutes. */
const PATIENCE_MS = 500_000;
const program = (text: string): GitFiles => ({
  'go.mod': 'module example.com/shop\n\ngo 1.18\n',
  'main.go':
    'package main\n\nimport ("net/http"; "os")\n\nfunc main() {\n' +
    '\thttp.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), http.HandlerFunc(func(w http.ResponseWriter, ' +
    `_ *http.Request) { w.Write([]byte("${text}")) }))\n}\n`,
});
/** All that a build could try: writing through the links, replacing what they lead to, and the entries of the index. */
const poison = `exec 2>/dev/null
for file in "$GOCACHE"/*/*-d; do echo poison >> "$file"; done
library=$(dirname "$(dirname "$(readlink -f "$(ls "$GOCACHE"/*/*-d | head -n 1)")")")
echo "library at $library"
for file in "$library"/*/* "$library"/../index/*/*; do echo poison > "$file"; rm -f "$file"; done
touch "$library/x"; chmod -R a+w "$library"
find "$GOCACHE" -name '*-a' -exec sh -c 'echo poison > "$1"' sh {} \\;
mkdir -p bin; printf '#!/bin/sh\\nexec sleep 1000\\n' > bin/shop; chmod +x bin/shop
exit 0
`;

async function deploy(files: GitFiles, settings: object = {}): Promise<{ application: TestApplication; log: string }> {
  const application = await service.application(files, settings);
  const ended = await application.ended((await application.ask()).id, PATIENCE_MS);
  return { application, log: (await application.log(ended.id)).join('\n') };
}

test(
  'the second application links what the first deployment compiled, whatever a tenant did in between',
  async () => {
    const first = await deploy(program('first'));
    expect(first.log).toMatch(/The standard library of Go \S+ is compiled now, once for all applications/);
    expect((await first.application.visit()).body).toBe('first');
    const toolchains = path.join(service.runtimeDir, 'toolchains');
    const [library = ''] = readdirSync(toolchains).filter((name) => name.startsWith('go-library-'));
    const before = fingerprint(path.join(toolchains, library));
    const hostile = await deploy(program('hostile'), { build: { build_command: poison } });
    expect(hostile.log).toMatch(/library at .*go-library-/);
    expect(fingerprint(path.join(toolchains, library))).toEqual(before);
    const second = await deploy(program('second'));
    expect((await second.application.visit()).body).toBe('second');
    expect(second.log).not.toMatch(/compiled now/);
    expect(second.log.split('\n')).not.toContain('net/http');
    expect(second.log.split('\n')).toContain('example.com/shop');
  },
  3 * PATIENCE_MS,
);

function fingerprint(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => {
      const { size, mode, uid, mtimeMs } = statSync(path.join(directory, name));
      return `${name} ${size} ${mode} ${uid} ${mtimeMs}`;
    });
}
