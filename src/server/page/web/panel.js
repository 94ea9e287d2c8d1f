// The live panel: shows some of the values at /metrics, once per second while the page is visible.
import { fetchMetrics } from './api.js';

const kPeriodMs = 1000;
const kTimeoutMs = 5000;
const kNumSamples = 60;
const kWidth = 120;
const kHeight = 28;

// Returns a map of name to value, summed over labels. The sums of histogram buckets have no
// meaning.
export function parseMetrics(text) {
  const values = new Map();
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const name = line.slice(0, line.search(/[{ ]/));
    const value = Number(line.slice(line.lastIndexOf(' ') + 1));
    values.set(name, (values.get(name) ?? 0) + value);
  }
  return values;
}

const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
const count = (value) => Math.round(value).toLocaleString('en');

// The gauges, computed from the metrics now and at the previous reading. `top` is the upper end of
// the drawing; without it, the highest sample, at least 1.
const kGauges = [
  { id: 'running', value: (now) => now.get('vllm:num_requests_running'), show: count },
  { id: 'waiting', value: (now) => now.get('vllm:num_requests_waiting'), show: count },
  { id: 'kv', value: (now) => now.get('vllm:kv_cache_usage_perc'), show: percent, top: 1 },
  { id: 'rate', value: tokensPerSecond, show: count },
  { id: 'hits', value: hitShare, show: percent, top: 1 },
];

// Returns NaN at the first reading, since a rate needs two.
function tokensPerSecond(now, before, seconds) {
  const name = 'vllm:generation_tokens_total';
  return before ? Math.max(0, now.get(name) - before.get(name)) / seconds : NaN;
}

// Returns the share of all prompt tokens since the server started.
function hitShare(now) {
  const queries = now.get('vllm:prefix_cache_queries_total');
  return queries > 0 ? now.get('vllm:prefix_cache_hits_total') / queries : 0;
}

// Returns the points "x,y x,y …" of a line through the samples, with the newest at the right edge.
export function sparklinePoints(samples, top) {
  const highest = top ?? Math.max(1, ...samples);
  const step = kWidth / (kNumSamples - 1);
  const first = kNumSamples - samples.length;
  return samples.map((sample, i) => {
    const y = kHeight - 1 - (kHeight - 2) * Math.min(1, sample / highest);
    return `${((first + i) * step).toFixed(1)},${y.toFixed(1)}`;
  }).join(' ');
}

// Returns the function that draws the gauge's samples.
function drawing(gauge) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', `0 0 ${kWidth} ${kHeight}`);
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('aria-hidden', 'true');
  const area = svg.appendChild(document.createElementNS(svg.namespaceURI, 'polygon'));
  const line = svg.appendChild(document.createElementNS(svg.namespaceURI, 'polyline'));
  document.querySelector(`[data-gauge="${gauge.id}"] .spark`).append(svg);
  return (points) => {
    const left = points.slice(0, points.indexOf(','));
    area.setAttribute('points', `${left},${kHeight} ${points} ${kWidth},${kHeight}`);
    line.setAttribute('points', points);
  };
}

export function startPanel() {
  const state = document.getElementById('panel-state');
  const gauges = kGauges.map((gauge) => ({
    ...gauge,
    samples: [],
    draw: drawing(gauge),
    output: document.querySelector(`[data-gauge="${gauge.id}"] .value`),
  }));
  let before = null;
  let beforeMs = 0;
  let timer = 0;
  let inFlight = null;

  function show(now, nowMs) {
    for (const gauge of gauges) {
      const value = gauge.value(now, before, (nowMs - beforeMs) / 1000);
      if (!Number.isFinite(value)) continue;
      gauge.samples.push(value);
      if (gauge.samples.length > kNumSamples) gauge.samples.shift();
      gauge.output.textContent = gauge.show(value);
      gauge.draw(sparklinePoints(gauge.samples, gauge.top));
    }
    before = now;
    beforeMs = nowMs;
  }

  async function poll() {
    const abort = new AbortController();
    inFlight = abort;
    const deadline = setTimeout(() => abort.abort('late'), kTimeoutMs);
    try {
      const text = await fetchMetrics(abort.signal);
      if (inFlight !== abort) return;
      show(parseMetrics(text), performance.now());
      state.textContent = 'live';
    } catch {
      if (inFlight !== abort) return;
      state.textContent = 'no contact';
      before = null;
    } finally {
      clearTimeout(deadline);
    }
    timer = setTimeout(poll, kPeriodMs);
  }

  // A hidden page sends no requests. Once it is shown again, rates start anew, without the time in
  // between.
  function follow() {
    clearTimeout(timer);
    inFlight?.abort();
    inFlight = null;
    before = null;
    if (document.visibilityState === 'visible') poll();
  }
  document.addEventListener('visibilitychange', follow);
  follow();
}
