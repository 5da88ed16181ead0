// What a request becomes when its answer leads elsewhere, by the policy of who sends it.
import { followRedirects, type Hop, type RedirectPolicy } from '../../core/outbound/follow_redirects';

type Headers = Record<string, string>;
type Script = Record<string, [status: number, location?: string]>;

const POLICY: RedirectPolicy<Headers, number> = {
  redirectsMax: 2,
  writes: 'rewritten',
  allows: ({ protocol }) => protocol === 'https:',
  headersElsewhere: ({ authorization: _, ...others }) => others,
  refusal: (why, status, { host }) => new Error(`${why} ${status} ${host}`),
};

const HEADERS = { authorization: 'secret', accept: '*/*' };
const START = 'https://one.example/start';

/** The hops as `METHOD address headers`, and the status of the last one, or why it was refused. */
async function follow(script: Script, policy: Partial<typeof POLICY> = {}, method = 'GET'): Promise<string[]> {
  const hops: string[] = [];
  let open = 0;
  const send = async (hop: Hop<Headers>) => {
    hops.push(`${hop.method} ${hop.url.href} ${Object.keys(hop.headers).join(' ')}`);
    const [status, location] = script[hop.url.href] ?? [200];
    open += 1;
    return { answer: status, status, location, close: () => void (open -= 1) };
  };
  const first = { url: new URL(START), method, headers: HEADERS };
  const end = await followRedirects(first, { ...POLICY, ...policy }, send).then(
    (status) => [`${status} with ${open} open`],
    (error: Error) => [`${error.message} with ${open} open`],
  );
  return [...hops, ...end];
}

test('an answer that leads nowhere is the answer, also a 3xx without an address', async () => {
  expect(await follow({})).toEqual([`GET ${START} authorization accept`, '200 with 1 open']);
  expect(await follow({ [START]: [302] })).toEqual([`GET ${START} authorization accept`, '302 with 1 open']);
  expect((await follow({ [START]: [304, '/next'] })).at(-1)).toBe('304 with 1 open');
});

test('headers that are for one origin do not come back behind another one', async () => {
  const script: Script = {
    [START]: [302, '/next'],
    'https://one.example/next': [302, 'https://two.example/'],
    'https://two.example/': [302, 'https://one.example/end'],
  };
  expect(await follow(script, { redirectsMax: 3 })).toEqual([
    `GET ${START} authorization accept`,
    'GET https://one.example/next authorization accept',
    'GET https://two.example/ accept',
    'GET https://one.example/end accept',
    '200 with 1 open',
  ]);
});

test.each([
  ['rewritten', 'POST', 301, 'GET'],
  ['rewritten', 'POST', 303, 'GET'],
  ['rewritten', 'PUT', 302, 'PUT'],
  ['rewritten', 'PUT', 303, 'GET'],
  ['rewritten', 'HEAD', 303, 'HEAD'],
  ['rewritten', 'POST', 307, 'POST'],
  ['kept', 'POST', 303, 'POST'],
  ['refused', 'GET', 302, 'GET'],
  ['refused', 'POST', 308, 'POST'],
  ['refused', 'POST', 302, null],
] as const)('writes are %s: a %s after %i is %s', async (writes, method, status, then) => {
  const hops = await follow({ [START]: [status, '/next'] }, { writes }, method);
  const refused = `method ${status} one.example with 0 open`;
  expect(hops[1]).toBe(then === null ? refused : `${then} https://one.example/next authorization accept`);
});

test('what is not allowed, is no address or goes on for too long is refused, with its connection closed', async () => {
  expect((await follow({ [START]: [302, 'http://one.example/'] })).at(-1)).toBe('address 302 one.example with 0 open');
  expect((await follow({ [START]: [302, 'https://['] })).at(-1)).toBe('address 302 one.example with 0 open');
  const circle = await follow({ [START]: [302, START] });
  expect(circle).toHaveLength(4);
  expect(circle.at(-1)).toBe('count 302 one.example with 0 open');
});
