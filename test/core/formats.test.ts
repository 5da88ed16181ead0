import { formats, isFormat, type FormatName } from '../../core/formats';

const a = (count: number): string => 'a'.repeat(count);
const label63 = a(63);

/** Per format: texts and their normal form; null = refused. */
const cases: Record<FormatName, [string, string | null][]> = {
  slug: [
    ['abc', 'abc'], ['a-1', 'a-1'], [a(40), a(40)],
    ['ab', null], [a(41), null], ['1ab', null], ['-ab', null], ['ab-', null], ['a--b', null], ['aBc', null], ['a_c', null], ['äbc', null], [' abc', null],
  ],
  label: [
    ['x', 'x'], ['  My project  ', 'My project'], ['Größe \u{1f600}', 'Größe \u{1f600}'], ['\u{1f600}'.repeat(100), '\u{1f600}'.repeat(100)], [` ${a(100)} `, a(100)],
    ['', null], ['   ', null], [a(101), null], ['\u{1f600}'.repeat(101), null], ['a\tb', null],
  ],
  single_line: [['', ''], ['any text: "quoted"', 'any text: "quoted"'], [' kept ', ' kept '], [a(5000), a(5000)]],
  hostname: [
    ['example.com', 'example.com'], ['WWW.Example.COM', 'www.example.com'], ['a.b.c.example.com', 'a.b.c.example.com'], ['1.example.com', '1.example.com'],
    ['xn--bcher-kva.de', 'xn--bcher-kva.de'], ['Bücher.de', 'xn--bcher-kva.de'], ['例え。テスト', 'xn--r8jz45g.xn--zckzah'], [`${label63}.example.com`, `${label63}.example.com`],
    [`${label63}.${label63}.${label63}.${a(61)}`, `${label63}.${label63}.${label63}.${a(61)}`],
    ['', null], ['localhost', null], ['example.com.', null], ['.example.com', null], ['a..example.com', null], ['-a.example.com', null], ['a-.example.com', null],
    [`${a(64)}.example.com`, null], [`${label63}.${label63}.${label63}.${a(62)}`, null], ['a_b.example.com', null], ['a b.example.com', null], ['*.example.com', null],
    ['192.0.2.1', null], ['1.2.3', null], ['0x7f.1', null], ['[2001:db8::1]', null], ['a%2eexample.com', null], ['xn--a.com', null], ['http://example.com', null], ['example.com:80', null],
  ],
  wildcard_hostname: [
    ['example.com', 'example.com'], ['*.Example.com', '*.example.com'], ['*.bücher.de', '*.xn--bcher-kva.de'],
    ['*', null], ['*.', null], ['*.com', null], ['*.*.example.com', null], ['a.*.example.com', null], ['*a.example.com', null],
    [`*.${label63}.${label63}.${label63}.${a(59)}`, `*.${label63}.${label63}.${label63}.${a(59)}`], [`*.${label63}.${label63}.${label63}.${a(60)}`, null],
  ],
  cidr: [
    ['192.0.2.0/24', '192.0.2.0/24'], ['192.0.2.7', '192.0.2.7/32'], ['0.0.0.0/0', '0.0.0.0/0'], ['10.128.0.0/9', '10.128.0.0/9'], ['255.255.255.255/32', '255.255.255.255/32'],
    ['2001:DB8:0:0::/32', '2001:db8::/32'], ['2001:db8::1', '2001:db8::1/128'], ['::/0', '::/0'], ['2001:db8:8000::/33', '2001:db8:8000::/33'],
    ['192.0.2.1/24', null], ['10.64.0.0/9', null], ['192.0.2.0/33', null], ['192.0.2.0/-1', null], ['192.0.2.0/024', null], ['192.0.2.0/', null], ['192.0.2.0/24/24', null],
    ['192.0.2/24', null], ['192.0.02.0/24', null], ['0xc0.0.2.0/24', null], ['2001:db8::1/64', null], ['2001:db8::/129', null], ['fe80::1%eth0', null], ['', null], ['/24', null], ['example.com', null],
  ],
  email: [
    ['a@example.com', 'a@example.com'], ['First.Last+tag@Example.COM', 'First.Last+tag@example.com'], ["o'neil@example.com", "o'neil@example.com"], ['a@bücher.de', 'a@xn--bcher-kva.de'],
    [`${a(64)}@example.com`, `${a(64)}@example.com`],
    ['', null], ['a', null], ['@example.com', null], ['a@', null], ['a@localhost', null], ['a@@example.com', null], ['.a@example.com', null], ['a..b@example.com', null], ['a b@example.com', null],
    ['"a"@example.com', null], ['<a@example.com>', null], ['a@example.com, b@example.com', null], [`${a(65)}@example.com`, null], [`${a(64)}@${label63}.${label63}.${a(62)}.com`, null],
  ],
  timestamp: [
    ['2026-01-31T09:30:00Z', '2026-01-31T09:30:00.000Z'], ['2026-01-31t09:30:00z', '2026-01-31T09:30:00.000Z'], ['2026-01-31T09:30:00.1Z', '2026-01-31T09:30:00.100Z'],
    ['2026-01-31T09:30:00.123999Z', '2026-01-31T09:30:00.123Z'], ['2026-01-01T00:30:00+01:00', '2025-12-31T23:30:00.000Z'], ['2026-01-31T09:30:00-05:30', '2026-01-31T15:00:00.000Z'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000Z'], ['0000-01-01T00:00:00Z', '0000-01-01T00:00:00.000Z'],
    ['2026-02-29T00:00:00Z', null], ['2026-02-30T00:00:00Z', null], ['2026-13-01T00:00:00Z', null], ['2026-01-01T24:00:00Z', null], ['2026-01-01T00:00:60Z', null], ['2026-01-01T00:00:00', null],
    ['2026-01-01', null], ['2026-01-01 00:00:00Z', null], ['2026-01-01T00:00:00+24:00', null], ['2026-01-01T00:00:00+0100', null], ['0000-01-01T00:00:00+01:00', null], ['9999-12-31T23:59:59-01:00', null], ['1767225600', null], ['', null],
  ],
  env_key: [
    ['A', 'A'], ['_a1', '_a1'], ['DATABASE_URL', 'DATABASE_URL'], [a(128), a(128)],
    ['', null], ['1A', null], ['A-B', null], ['A B', null], ['A=B', null], ['Ä', null], [a(129), null],
  ],
  mount_path: [
    ['/data', '/data'], ['/var/lib/my app', '/var/lib/my app'], ['/procedures', '/procedures'], ['/a/..b', '/a/..b'], [`/${a(254)}`, `/${a(254)}`],
    ['', null], ['/', null], ['data', null], ['/a/', null], ['//a', null], ['/a//b', null], ['/a/../b', null], ['/..', null], ['/a/./b', null], ['/proc', null], ['/proc/1', null], ['/sys/x', null], ['/dev', null], [`/${a(255)}`, null],
  ],
  relative_path: [
    ['.', '.'], ['Dockerfile', 'Dockerfile'], ['docker/app.Dockerfile', 'docker/app.Dockerfile'], ['..a/b', '..a/b'], [a(255), a(255)],
    ['', null], ['/a', null], ['..', null], ['a/../b', null], ['./a', null], ['a/', null], ['a//b', null], [a(256), null],
  ],
  url: [
    ['https://example.com', 'https://example.com'], ['HTTP://Example.com:8080/a?b=c#d', 'HTTP://Example.com:8080/a?b=c#d'], ['http://[2001:db8::1]/', 'http://[2001:db8::1]/'], ['https://example.com/@user', 'https://example.com/@user'],
    ['', null], ['example.com', null], ['//example.com', null], ['ftp://example.com', null], ['javascript:alert(1)', null], ['https://', null], ['https:///path', null], ['https:/example.com', null],
    ['https://user@example.com', null], ['https://user:pw@example.com', null], ['https://@example.com', null], ['https://example.com\\@evil.example', null], ['https://exa mple.com', null],
    [' https://example.com', null], ['https://example.com:99999', null], [`https://example.com/${a(2048)}`, null],
  ],
  https_url: [['https://example.com/a', 'https://example.com/a'], ['http://example.com', null], ['https://user:pw@example.com', null]],
  git_url: [
    ['https://git.example.com/a/b.git', 'https://git.example.com/a/b.git'], ['http://git.example.com/a', 'http://git.example.com/a'], ['ssh://git@git.example.com:2222/a/b.git', 'ssh://git@git.example.com:2222/a/b.git'],
    ['git@git.example.com:a/b.git', 'git@git.example.com:a/b.git'], ['file:///srv/repository', 'file:///srv/repository'],
    ['', null], ['--upload-pack=touch', null], ['ext::sh -c id', null], ['ext::sh', null], ['git://git.example.com/a', null], ['https://user:pw@git.example.com/a', null], ['ssh://-oProxyCommand=id/x', null], ['ssh://git@-oProxyCommand=id/x', null],
    ['ssh://git:pw@git.example.com/a', null], ['ssh://git.example.com/-x', null], ['-oProxyCommand=id@example.com:a', null], ['git@-example.com:a', null], ['git@git.example.com:-a', null], ['git@git.example.com::a', null],
    ['file://host/srv', null], ['file:////srv', null], ['/srv/repository', null], ['git@git.example.com:a b', null],
  ],
  oci_reference: [
    ['nginx', 'nginx'], ['nginx:1.27', 'nginx:1.27'], ['library/nginx', 'library/nginx'], ['registry.example.com/team/app:v1', 'registry.example.com/team/app:v1'], ['localhost:5000/app', 'localhost:5000/app'],
    [`nginx@sha256:${'0'.repeat(64)}`, `nginx@sha256:${'0'.repeat(64)}`], [`registry.example.com:5000/a/b:t@sha256:${'f'.repeat(64)}`, `registry.example.com:5000/a/b:t@sha256:${'f'.repeat(64)}`],
    ['a__b/c-d.e', 'a__b/c-d.e'], ['a---b', 'a---b'], ['[2001:db8::1]:5000/app', '[2001:db8::1]:5000/app'],
    ['', null], ['Nginx', null], ['nginx:', null], ['nginx:.tag', null], [`nginx:${a(129)}`, null], ['nginx@sha256:00', null], ['nginx@', null], ['/nginx', null], ['nginx/', null], ['a..b', null], ['a___b', null], ['-a', null],
    ['https://registry.example.com/app', null], ['nginx latest', null], [a(256), null], [a(513), null],
  ],
  commit_sha: [
    ['0123abc', '0123abc'], ['0123ABC', '0123abc'], ['0'.repeat(40), '0'.repeat(40)],
    ['012345', null], ['0'.repeat(41), null], ['0123abg', null], ['HEAD', null], ['', null],
  ],
};

describe.each(Object.entries(cases) as [FormatName, [string, string | null][]][])('%s', (name, rows) => {
  test.each(rows)('%j becomes %j', (text, value) => {
    expect(formats[name](text)).toEqual(value === null ? null : { value });
  });

  test('the normal form is its own normal form', () => {
    for (const [, value] of rows) if (value !== null) expect(formats[name](value)).toEqual({ value });
  });

  test('control characters and broken characters are refused everywhere', () => {
    const good = rows.find(([, value]) => value !== null)?.[0] ?? '';
    for (const bad of ['\0', '\n', '\r', '\t', '\u001b', '\u007f', '\u0085', '\u2028', '\u2029', '\ud800', '\udc00']) {
      for (const at of [0, Math.ceil(good.length / 2), good.length]) expect(formats[name](good.slice(0, at) + bad + good.slice(at))).toBeNull();
    }
  });

  // A pattern that backtracks would take minutes, not the milliseconds that all of this takes.
  test('hostile lengths cost little', () => {
    const begun = process.cpuUsage().user;
    for (const part of ['a', '-', '.', '_', '/', 'a-', 'a.', ':', '@', '1', '*.', 'é']) formats[name](part.repeat(50_000));
    expect(process.cpuUsage().user - begun).toBeLessThan(1_000_000);
  });
});

test('names of formats are known exactly', () => {
  expect(Object.keys(formats).every(isFormat)).toBe(true);
  expect(isFormat('toString')).toBe(false);
});
