// Origins that break off: nothing of theirs is ever kept as whole.
import type { CdnBench } from '../support/cdn/cdn_bench';
import type { OriginAnswer } from './cdn_rule';

const BODY = '0123456789'.repeat(1_000);
const BROKEN: [string, OriginAnswer][] = [
  ['of a known length', { breaks: 'body' }],
  ['in chunks', { breaks: 'body', framing: 'chunked' }],
];

export function describeBreakOffs(bench: () => CdnBench): void {
  test.each(BROKEN)('a body %s that breaks off is not kept, for one or many', async (name, broken) => {
    const host = await bench().zone('cdn_broken');
    const path = `/broken/${broken.framing ?? 'length'}`;
    const headers = { 'cache-control': 'max-age=60' };
    bench().origin(path, [
      { ...broken, headers, body: BODY, delayMs: 200 },
      { headers, body: BODY },
    ]);
    const seen = await Promise.all([1, 2, 3].map(() => bench().visit(host, path)));
    // None has seen a whole one that is none.
    for (const { status, body } of seen) if (status === 200) expect([name, body]).toEqual([name, BODY]);
    expect(seen.some(({ status }) => status !== 200)).toBe(true);
    expect(await bench().visit(host, path)).toMatchObject({ status: 200, body: BODY });
  });

  test('a body in chunks is kept, one that ends with its connection is not', async () => {
    const host = await bench().zone('cdn_framed');
    const headers = { 'cache-control': 'max-age=60' };
    bench().origin('/framed/chunks', [{ headers, framing: 'chunked' }]);
    bench().origin('/framed/close', [{ headers, framing: 'close' }]);
    for (const path of ['/framed/chunks', '/framed/close'])
      for (let turn = 0; turn < 2; turn += 1) await bench().visit(host, path);
    expect([bench().asked('/framed/chunks').length, bench().asked('/framed/close').length]).toEqual([1, 2]);
  });
}
