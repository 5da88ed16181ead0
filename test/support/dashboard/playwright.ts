// The part of playwright-core that tests call: its own types are installed with tools/development, if at all.
export interface Locator {
  fill(text: string): Promise<void>;
  click(options?: { timeout?: number; force?: boolean }): Promise<void>;
  /** Also the path of a folder. */
  setInputFiles(files: string | { name: string; mimeType: string; buffer: Buffer }[]): Promise<void>;
  check(): Promise<void>;
  uncheck(): Promise<void>;
  press(key: string): Promise<void>;
  selectOption(value: string | { label: string }): Promise<unknown>;
  waitFor(options?: { timeout?: number; state?: 'visible' | 'hidden' | 'detached' | 'attached' }): Promise<void>;
  inputValue(): Promise<string>;
  innerText(): Promise<string>;
  allInnerTexts(): Promise<string[]>;
  boundingBox(): Promise<{ x: number; y: number; width: number; height: number } | null>;
  textContent(): Promise<string | null>;
  getAttribute(name: string): Promise<string | null>;
  evaluate<Result>(work: (element: Element) => Result): Promise<Result>;
  count(): Promise<number>;
  allInnerTexts(): Promise<string[]>;
  first(): Locator;
  last(): Locator;
  nth(index: number): Locator;
  locator(selector: string, options?: { hasText?: string | RegExp }): Locator;
  getByLabel(text: string | RegExp, options?: { exact?: boolean }): Locator;
  getByText(text: string | RegExp, options?: { exact?: boolean }): Locator;
  getByRole(role: string, options?: { name?: string | RegExp; exact?: boolean }): Locator;
}

interface Element {
  matches(selector: string): boolean;
  getBoundingClientRect(): { height: number; top: number };
}

/** The DevTools protocol of a page. */
interface DevTools {
  send(method: string, params: object): Promise<unknown>;
  detach(): Promise<void>;
}

export interface Page extends Pick<Locator, 'locator' | 'getByLabel' | 'getByText' | 'getByRole'> {
  goto(url: string): Promise<unknown>;
  reload(): Promise<unknown>;
  context(): {
    cookies(): Promise<{ name: string; secure: boolean }[]>;
    newCDPSession(page: Page): Promise<DevTools>;
  };
  url(): string;
  title(): Promise<string>;
  keyboard: { press(key: string): Promise<void>; type(text: string): Promise<void> };
  mouse: { wheel(x: number, y: number): Promise<void> };
  setDefaultTimeout(ms: number): void;
  setViewportSize(size: { width: number; height: number }): Promise<void>;
  emulateMedia(media: { colorScheme: 'light' | 'dark' }): Promise<void>;
  waitForEvent(event: 'download'): Promise<{ path(): Promise<string> }>;
  waitForURL(url: string | RegExp): Promise<void>;
  evaluate(expression: string): Promise<unknown>;
  addInitScript(script: string): Promise<void>;
  screenshot(options: { path: string; fullPage?: boolean }): Promise<unknown>;
  viewportSize(): { width: number; height: number } | null;
  route(pattern: string, handle: (route: Route) => Promise<void>): Promise<void>;
  unroute(pattern: string): Promise<void>;
  on(event: 'console', listener: (message: { type(): string; text(): string }) => void): void;
  on(event: 'pageerror', listener: (error: Error) => void): void;
  on(event: 'dialog', listener: (dialog: { type(): string; dismiss(): Promise<void> }) => void): void;
  on(event: 'filechooser', listener: (chooser: { setFiles: Locator['setInputFiles'] }) => void): void;
  on(event: 'request', listener: (request: { url(): string; postData(): string | null }) => void): void;
}

export interface Route {
  request(): { isNavigationRequest(): boolean };
  fulfill(answer: { status: number; body: string }): Promise<void>;
  continue(): Promise<void>;
}

export interface Browser {
  newContext(options: object): Promise<{ newPage(): Promise<Page>; close(): Promise<void> }>;
  close(): Promise<void>;
}

export interface Playwright {
  chromium: { launch(options: object): Promise<Browser> };
}
