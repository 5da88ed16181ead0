// A request as a command of curl.

const quote = (text: string): string => `'${text.replace(/'/g, `'\\''`)}'`;

/** @param token what stands for the token: `hidden` writes `$SVC_TOKEN` */
export function formatCurl(
  request: { method: string; url: URL; headers: Record<string, string>; body: string | undefined },
  token: 'hidden' | 'shown',
): string {
  const { method, url, headers, body } = request;
  const lines = Object.entries(headers).map(([name, value]) =>
    name === 'Authorization' && token === 'hidden'
      ? `-H "Authorization: Bearer $SVC_TOKEN"`
      : `-H ${quote(`${name}: ${value}`)}`,
  );
  const isUsual = method === 'GET' || (method === 'POST' && body !== undefined);
  return [
    `curl ${isUsual ? '' : `-X ${method} `}${quote(url.href)}`,
    ...lines,
    ...(body === undefined ? [] : [`--data ${quote(body)}`]),
  ].join(' \\\n  ');
}
