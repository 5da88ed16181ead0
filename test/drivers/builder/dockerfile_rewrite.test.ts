/** @user any */
// What buildah gets in the place of a Dockerfile, and which line each of its steps is.
import { rewriteDockerfile } from '../../../drivers/builder/dockerfile/dockerfile_rewrite';

const STAGE = '# platform: a stage begins';
const rewritten = (...lines: string[]) => rewriteDockerfile(lines.join('\n'), 'Dockerfile');
const linesOf = (...lines: string[]) =>
  rewritten(...lines)
    .text.trimEnd()
    .split('\n');

test('what buildah knows stays as it is written, and each step has its line', () => {
  const text = [
    '# escape=`',
    'ARG V=1',
    'FROM a:$V AS one',
    '',
    'RUN a `',
    '  # why',
    '  && b',
    'FROM one',
    'COPY . /x',
  ];
  const { text: written, lines } = rewritten(...text);
  expect(written).toBe(
    [
      '# escape=`',
      'ARG V=1',
      'FROM a:$V AS one',
      STAGE,
      'RUN a `',
      '  # why',
      '  && b',
      'FROM one',
      STAGE,
      'COPY . /x',
      '',
    ].join('\n'),
  );
  expect(lines).toEqual([
    [3, 5],
    [8, 9],
  ]);
});

test('several names in one ARG', () => {
  expect(linesOf('FROM a', 'ARG A B=x C="y z" D=\'q r\'')).toEqual([
    'FROM a',
    STAGE,
    'ARG A',
    'ARG B=x',
    'ARG C="y z"',
    "ARG D='q r'",
  ]);
  expect(rewritten('FROM a', '', 'ARG A B', 'RUN x').lines).toEqual([[1, 3, 3, 4]]);
});

test('targets of mounts below WORKDIR, which stages hand on', () => {
  const mount = (target: string) => `RUN --mount=type=bind,source=a,target=${target} b`;
  const resolved = (target: string) => `RUN --mount=type=bind,source=a,target=${target},nosuid,nodev b`;
  const found = linesOf(
    'FROM a AS one',
    'WORKDIR /x',
    'WORKDIR y',
    mount('f'),
    'FROM one',
    mount('./f'),
    'WORKDIR $P',
    mount('f'),
  );
  expect(found.filter((line) => line.startsWith('RUN'))).toEqual([
    resolved('/x/y/f'),
    resolved('/x/y/f'),
    resolved('$P/f'),
  ]);
  expect(linesOf('FROM scratch', mount('f')).at(-1)).toBe(resolved('/f'));
  expect(() => rewritten('FROM a', mount('f'))).toThrow(
    'Line 2 of Dockerfile: the target f of --mount is relative, and the stage has no WORKDIR above it. ' +
      'Add a WORKDIR, or name an absolute path.',
  );
});

test('here-documents are scripts of the shell in effect, or files', () => {
  expect(
    linesOf('FROM a', 'SHELL ["/bin/bash", "-ec"]', 'RUN <<EOF', 'a "$b"', '# no comment', 'EOF', 'RUN x').slice(-2),
  ).toEqual(['RUN ["/bin/bash","-ec","a \\"$b\\"\\n# no comment\\n"]', 'RUN x']);
  const { contexts, text, lines } = rewritten(
    'FROM a',
    'COPY --chmod=755 <<"one" <<two /d/',
    '$a',
    'one',
    'b',
    'two',
    'RUN x',
  );
  expect(contexts).toEqual({ 'platform-documents-1': { one: '$a\n', two: 'b\n' } });
  expect(text).toContain('COPY --chmod=755 --from=platform-documents-1 one two /d/');
  expect(lines).toEqual([[1, 2, 7]]);
  expect(() => rewritten('FROM a', 'COPY <<EOF /x', '$HOME', 'EOF')).toThrow(
    /^Line 2 of Dockerfile: .* needs buildah 1\.33/,
  );
  // A shift is none, and neither is what has no end.
  expect(linesOf('FROM a', 'RUN echo $((1<<2)) <<<x', 'RUN cat <<EOF').slice(-2)).toEqual([
    'RUN echo $((1<<2)) <<<x',
    'RUN cat <<EOF',
  ]);
});
