# Builds libzmq, which scripts/fetch_deps.sh downloads, as a static library with the transports tcp,
# ipc and inproc, without encryption. Its own build is not used, because it probes the system for
# options that are known here.
set(QUIRE_LIBZMQ_DIR ${CMAKE_SOURCE_DIR}/.deps/libzmq)

include(quire_fetched)
quire_require_fetched(libzmq cmake/libzmq_pin.txt scripts/fetch_deps.sh "")

set(libzmq_names
  address channel client clock ctx dealer decoder_allocators dgram dish dist endpoint epoll err fq
  gather io_object io_thread ip ip_resolver ipc_address ipc_connecter ipc_listener lb mailbox
  mailbox_safe mechanism mechanism_base metadata msg mtrie null_mechanism object options own pair
  peer pipe plain_client plain_server poller_base polling_util proxy pub pull push radio radix_tree
  random raw_decoder raw_encoder raw_engine reaper rep req router scatter server session_base
  signaler socket_base socket_poller socks socks_connecter stream stream_connecter_base
  stream_engine_base stream_listener_base sub tcp tcp_address tcp_connecter tcp_listener thread
  timers trie udp_address udp_engine v1_decoder v1_encoder v2_decoder v2_encoder v3_1_encoder xpub
  xsub zap_client zmq zmq_utils zmtp_engine)
list(TRANSFORM libzmq_names REPLACE "(.+)" "${QUIRE_LIBZMQ_DIR}/src/\\1.cpp"
     OUTPUT_VARIABLE libzmq_sources)

# The result of its own configuration on Linux with GCC or clang.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/libzmq/platform.hpp CONTENT "#pragma once
#define ZMQ_IOTHREAD_POLLER_USE_EPOLL
#define ZMQ_IOTHREAD_POLLER_USE_EPOLL_CLOEXEC
#define ZMQ_POLL_BASED_ON_POLL
#define ZMQ_CACHELINE_SIZE 64
#define ZMQ_USE_CV_IMPL_STL11
#define ZMQ_HAVE_ATOMIC_INTRINSICS
#define ZMQ_HAVE_LINUX
#define ZMQ_HAVE_IPC
#define ZMQ_HAVE_IFADDRS
#define ZMQ_HAVE_EVENTFD
#define ZMQ_HAVE_EVENTFD_CLOEXEC
#define ZMQ_HAVE_SOCK_CLOEXEC
#define ZMQ_HAVE_O_CLOEXEC
#define ZMQ_HAVE_SO_KEEPALIVE
#define ZMQ_HAVE_TCP_KEEPCNT
#define ZMQ_HAVE_TCP_KEEPIDLE
#define ZMQ_HAVE_TCP_KEEPINTVL
#define ZMQ_HAVE_SO_PEERCRED
#define ZMQ_HAVE_UIO
#define ZMQ_HAVE_PTHREAD_SETNAME_2
#define ZMQ_HAVE_PTHREAD_SET_AFFINITY
#define HAVE_CLOCK_GETTIME
#define HAVE_FORK
#define HAVE_MKDTEMP
#define HAVE_STRNLEN
#define HAVE_IF_NAMETOINDEX
")

add_library(libzmq STATIC ${libzmq_sources})
target_include_directories(libzmq SYSTEM PUBLIC ${QUIRE_LIBZMQ_DIR}/include
                           PRIVATE ${CMAKE_BINARY_DIR}/libzmq)
target_compile_definitions(libzmq PUBLIC ZMQ_STATIC)
target_link_libraries(libzmq PRIVATE Threads::Threads)
set_target_properties(libzmq PROPERTIES OUTPUT_NAME zmq CXX_STANDARD 17
                      UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 24)
target_compile_options(libzmq PRIVATE -w -fno-omit-frame-pointer)
quire_optimize(libzmq -O1)
if(QUIRE_SANITIZE)
  target_compile_options(libzmq PRIVATE -fsanitize=${QUIRE_SANITIZE} -fno-sanitize-recover=all)
endif()
