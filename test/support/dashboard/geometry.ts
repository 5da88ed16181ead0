// What pages must not do with the room that they have, found by geometry: texts that are cut, that lie on each other or
// leave their box, and controls that touch.
import type { Page } from './playwright';

/** Runs in the page. @returns one sentence for each fault */
const FAULTS = `(() => {
  const MIN = 2;
  const isShown = (element) => element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
  const isOffScreen = (element) => element.closest('.off-screen, .skip, .skeleton') !== null
    || getComputedStyle(element).clipPath !== 'none';
  const named = (element) => {
    const text = (element.innerText || element.getAttribute('aria-label') || '').replace(/\\s+/g, ' ').slice(0, 40);
    const classes = typeof element.className === 'string' ? element.className.trim() : '';
    const name = classes && '.' + classes.split(/\\s+/).join('.');
    return element.tagName.toLowerCase() + name + ' "' + text + '"';
  };
  const modal = document.querySelector('dialog:modal');
  const root = modal ?? document.body;
  const all = [...root.querySelectorAll('*')].filter((element) => isShown(element) && !isOffScreen(element));
  const faults = new Set();

  // What scrolls by itself shows the rest; ellipses are cut on purpose, and say the rest when asked.
  const scrolls = (element, axis) => /auto|scroll/.test(getComputedStyle(element)['overflow' + axis]);
  const scrollsAbove = (element) => {
    for (let above = element.parentElement; above && above !== document.body; above = above.parentElement)
      if (scrolls(above, 'X')) return true;
    return false;
  };
  const ownText = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  const rectsOfText = (element) => [...element.childNodes]
    .filter((node) => node.nodeType === 3 && node.textContent.trim())
    .flatMap((node) => {
      const range = document.createRange();
      range.selectNodeContents(node);
      return [...range.getClientRects()];
    }).filter(({ width, height }) => width > 0 && height > 0);

  for (const element of all) {
    if (element instanceof SVGElement || !ownText(element)) continue;
    const style = getComputedStyle(element);
    const isClipped = style.overflowX !== 'visible' && !scrolls(element, 'X');
    if (isClipped && style.textOverflow !== 'ellipsis' && element.scrollWidth > element.clientWidth + MIN)
      faults.add('cut: ' + named(element));
    for (const rect of rectsOfText(element)) {
      if (!scrollsAbove(element) && !scrolls(element, 'X') && style.textOverflow !== 'ellipsis'
        && !element.closest('.clip') && (rect.right > innerWidth + MIN || rect.left < -MIN))
        faults.add('off the screen: ' + named(element));
      const box = element.closest('button, [role=button], summary, input, select, .card, .notice, .row, td, th, dd, '
        + 'figure');
      if (!box || scrolls(box, 'X') || element.closest('.clip, .copyable, pre, .sections')) continue;
      if (/inline$/.test(getComputedStyle(box).display)) continue;
      const around = box.getBoundingClientRect();
      if (rect.right > around.right + MIN || rect.left < around.left - MIN)
        faults.add('leaves its box: ' + named(element) + ' of ' + named(box));
    }
  }

  // A name breaks between its words, not within one that has room in a column. Addresses and reasons do.
  const LONGEST = 20;
  for (const element of all) {
    if (innerWidth < 768 || element.closest('.clip, .reason')) continue;
    if (!element.closest('th[scope=row], h1, .card strong')) continue;
    for (const node of element.childNodes) {
      if (node.nodeType !== 3) continue;
      for (const { 0: word, index } of node.textContent.matchAll(/[\\p{L}\\p{N}]+/gu)) {
        const range = document.createRange();
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
        if (lines.size > 1 && word.length <= LONGEST)
          faults.add('a word that breaks: ' + word + ' of ' + named(element));
      }
    }
  }

  // Off-screen labels are one pixel in a place where nobody sees them.
  for (const label of root.querySelectorAll('.off-screen')) {
    if (!isShown(label)) continue;
    const { width, height } = label.getBoundingClientRect();
    if (width > 1.5 || height > 1.5) faults.add('an off-screen label that is drawn: ' + named(label));
  }

  // Controls beside each other leave a gap, whatever they are.
  const CONTROLS = 'button, [role=button], input:not([type=hidden]), select, textarea, summary';
  const visible = ({ left, right, width, height }) => width > 1 && height > 1 && right > 0 && left < innerWidth;
  const controls = all.filter((element) => element.matches(CONTROLS) && !element.closest('.segments label'))
    .map((element) => ({ element, rect: element.getBoundingClientRect() })).filter(({ rect }) => visible(rect));
  for (const [index, one] of controls.entries()) {
    for (const other of controls.slice(index + 1)) {
      if (one.element.contains(other.element) || other.element.contains(one.element)) continue;
      const gapX = Math.max(one.rect.left - other.rect.right, other.rect.left - one.rect.right);
      const gapY = Math.max(one.rect.top - other.rect.bottom, other.rect.top - one.rect.bottom);
      if (Math.max(gapX, gapY) < MIN && !isAbove(one.element, other.element))
        faults.add('controls that touch: ' + named(one.element) + ' and ' + named(other.element));
    }
  }
  // A menu that is open lies above the page, as does what stays in view while the page is scrolled.
  function isAbove(one, other) {
    const layer = (element) => element.closest('dialog, .menu-list, .side, .top, .role p');
    return layer(one) !== layer(other);
  }

  // Texts that lie on each other.
  const texts = all.filter((element) => !(element instanceof SVGElement) && ownText(element))
    .filter((element) => !element.closest('.chart-place, .u-wrap, .xterm, .menu-list, .role p, .side'))
    .flatMap((element) => rectsOfText(element).map((rect) => ({ element, rect: clippedBy(element, rect) })))
    .filter(({ rect }) => rect.right - rect.left > MIN && rect.bottom - rect.top > MIN)
    .sort((left, right) => left.rect.top - right.rect.top);
  function clippedBy(element, { top, bottom, left, right }) {
    let box = { top, bottom, left, right };
    for (let above = element; above && above !== document.body; above = above.parentElement) {
      if (getComputedStyle(above).overflowX === 'visible') continue;
      const edge = above.getBoundingClientRect();
      box = { top: Math.max(box.top, edge.top), bottom: Math.min(box.bottom, edge.bottom),
        left: Math.max(box.left, edge.left), right: Math.min(box.right, edge.right) };
    }
    return box;
  }
  for (const [index, one] of texts.entries()) {
    for (let at = index + 1; at < texts.length && texts[at].rect.top < one.rect.bottom - MIN; at += 1) {
      const other = texts[at];
      if (one.element.contains(other.element) || other.element.contains(one.element)) continue;
      const width = Math.min(one.rect.right, other.rect.right) - Math.max(one.rect.left, other.rect.left);
      const height = Math.min(one.rect.bottom, other.rect.bottom) - Math.max(one.rect.top, other.rect.top);
      // Lines of one paragraph may share the room of their descenders.
      if (width > MIN && height > 5)
        faults.add('texts on each other: ' + named(one.element) + ' and ' + named(other.element));
    }
  }
  return [...faults];
})()`;

/** Faults of the page as it stands at its width. */
export async function geometryFaults(page: Pick<Page, 'evaluate'>): Promise<string[]> {
  return (await page.evaluate(FAULTS)) as string[];
}
