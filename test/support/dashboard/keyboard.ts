// Somebody without a mouse: what Tab reaches, in its order, and whether it can be seen.
import type { Page } from './playwright';

/** What has the focus. */
interface Focused {
  /** As it is read out; empty where nothing has the focus. */
  name: string;
  tag: string;
  /** An outline is drawn around it. */
  isMarked: boolean;
  isInView: boolean;
  isInDialog: boolean;
}

export interface Keyboard {
  focused(): Promise<Focused>;
  /** Presses Tab until something with the name has the focus. Whatever is passed must be seen. */
  tabTo(name: string | RegExp): Promise<void>;
  press(key: string, times?: number): Promise<void>;
  type(text: string): Promise<void>;
  /** Waits until what has the focus has the name. */
  waitFor(name: string | RegExp): Promise<void>;
}

/** The frame, all tabs, and some rows. */
const STOPS_MAX = 120;
const WAIT_MS = 15_000;

const FOCUSED = `(() => {
  const element = document.activeElement ?? document.body;
  const { outlineStyle, outlineWidth } = getComputedStyle(element);
  const { top, bottom, left, right, height } = element.getBoundingClientRect();
  const isInside = bottom > 0 && right > 0 && top < innerHeight && left < innerWidth;
  const name = element.getAttribute('aria-label') ?? element.labels?.[0]?.innerText ?? element.innerText ?? '';
  return {
    name: element === document.body ? '' : element.id === 'main' ? 'main' : name.replace(/\\s+/g, ' ').trim(),
    tag: element.tagName.toLowerCase(),
    isMarked: outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2,
    isInView: height > 0 && isInside,
    isInDialog: element.closest('dialog') !== null,
  };
})()`;

const fits = (name: string, wanted: string | RegExp): boolean =>
  typeof wanted === 'string' ? name === wanted : wanted.test(name);

/** The keyboard of a page. */
export function keyboardOf(page: Page): Keyboard {
  const focused = async (): Promise<Focused> => (await page.evaluate(FOCUSED)) as Focused;
  return {
    focused,
    type: (text) => page.keyboard.type(text),
    async press(key, times = 1) {
      for (let time = 0; time < times; time += 1) await page.keyboard.press(key);
    },
    async tabTo(wanted) {
      const passed: string[] = [];
      while (passed.length < STOPS_MAX) {
        await page.keyboard.press('Tab');
        const found = await focused();
        if (found.name && !(found.isMarked && found.isInView))
          throw new Error(`${found.tag} "${found.name}" has the focus, and it cannot be seen`);
        if (fits(found.name, wanted)) return;
        passed.push(found.name);
      }
      throw new Error(`${String(wanted)} cannot be reached by Tab: ${[...new Set(passed)].join(' | ')}`);
    },
    async waitFor(wanted) {
      const until = Date.now() + WAIT_MS;
      let found = await focused();
      while (!fits(found.name, wanted)) {
        if (Date.now() > until) throw new Error(`"${found.name}" has the focus, and not ${String(wanted)}`);
        await page.evaluate('new Promise((resolve) => setTimeout(resolve, 20))');
        found = await focused();
      }
    },
  };
}
