// The colour theme: the system's choice until the reader selects one. This is a classic script in
// the head, so that the first paint already has the right colours.
(() => {
  const kKey = 'quire.theme';
  const system = matchMedia('(prefers-color-scheme: dark)');
  const root = document.documentElement;

  // A browser can refuse storage (private windows); the selection then lasts until the page is
  // closed.
  function stored() {
    try {
      return localStorage.getItem(kKey);
    } catch {
      return null;
    }
  }
  function store(theme) {
    try {
      localStorage.setItem(kKey, theme);
    } catch {
      // Storage is refused; see stored().
    }
  }

  let chosen = stored();
  const current = () =>
    chosen === 'light' || chosen === 'dark' ? chosen : system.matches ? 'dark' : 'light';

  function apply() {
    root.dataset.theme = current();
    const other = current() === 'dark' ? 'light' : 'dark';
    document.getElementById('theme')?.setAttribute('aria-label', `Use ${other} colours`);
  }

  apply();
  system.addEventListener('change', apply);
  document.addEventListener('DOMContentLoaded', () => {
    apply();
    document.getElementById('theme').addEventListener('click', () => {
      chosen = current() === 'dark' ? 'light' : 'dark';
      store(chosen);
      apply();
    });
  });
})();
