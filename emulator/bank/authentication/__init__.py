"""Strong customer authentication, from the TPP's request for it to the redirect that reports its outcome."""
