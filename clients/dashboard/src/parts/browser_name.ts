// What a browser calls itself, as people call it.

/** Those that call themselves others as well come first. */
const BROWSERS: [name: string, mark: RegExp][] = [
  ['Edge', /\bEdgA?\//],
  ['Opera', /\bOPR\//],
  ['Samsung Internet', /\bSamsungBrowser\//],
  ['Firefox', /\b(Firefox|FxiOS)\//],
  ['Chrome', /\b(Chrome|CriOS|HeadlessChrome)\//],
  ['Safari', /\bSafari\//],
];
const SYSTEMS: [name: string, mark: RegExp][] = [
  ['Android', /\bAndroid\b/],
  ['iPhone', /\biPhone\b/],
  ['iPad', /\biPad\b/],
  ['Windows', /\bWindows\b/],
  ['macOS', /\bMac OS X\b/],
  ['ChromeOS', /\bCrOS\b/],
  ['Linux', /\bLinux\b/],
];

/** `Firefox on Linux`; the beginning of what is not known. */
export function browserText(userAgent: string | null | undefined): string {
  if (!userAgent) return 'unknown';
  const found = (all: typeof BROWSERS): string | undefined => all.find(([, mark]) => mark.test(userAgent))?.[0];
  const [browser, system] = [found(BROWSERS), found(SYSTEMS)];
  if (!browser) return userAgent.slice(0, 40);
  return system ? `${browser} on ${system}` : browser;
}
